package errs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Errors of the Scheduler. They are wrapped with what was attempted; test for
// them with errors.Is.
var (
	// ErrUnknownRoute: no routing strategy has this name.
	ErrUnknownRoute = errors.New("xxljob: unknown routing strategy")
	// ErrUnknownBlock: no block strategy has this name.
	ErrUnknownBlock = errors.New("xxljob: unknown block strategy")
	// ErrUnknownHandler: no executor offers the app or the handler
	// (Config.StrictHandlers), or nobody has a handler in an app that this process
	// serves (Scheduler.Start).
	ErrUnknownHandler = errors.New("xxljob: unknown app or handler")
	// ErrNeverFires: the schedule has no instant in the future.
	ErrNeverFires = errors.New("xxljob: the schedule never fires")
	// ErrManual: a job without a schedule cannot be started; trigger it.
	ErrManual = errors.New("xxljob: the job has no schedule")
	// ErrCycle: the success of the job would lead to the job again, by way of its children and
	// of the jobs that run behind it.
	ErrCycle = errors.New("xxljob: the job would follow from itself")
	// ErrScripts: the caller may not write scripts, nor choose what they are given.
	ErrScripts = errors.New("xxljob: the caller may not write scripts")
	// ErrForeign: the caller may not run the job that is named, or there is none.
	ErrForeign = errors.New("xxljob: there is no such job, or the caller may not run it")
	// ErrUnseen: the caller may not see the job that is named, or there is none.
	ErrUnseen = errors.New("xxljob: there is no such job, or the caller may not see it")
	// ErrHidden: the caller may not show what is hidden.
	ErrHidden = errors.New("xxljob: the caller may not show what is hidden")
	// ErrNamed: jobs that the caller may not edit name this one, and would give a script its
	// parameter.
	ErrNamed = errors.New("xxljob: a job that the caller may not edit names this one, and would choose the parameter of a script")
	// ErrStarted: Start was called before.
	ErrStarted = errors.New("xxljob: the scheduler was started before")
	// ErrStopped: the scheduler is stopped.
	ErrStopped = errors.New("xxljob: the scheduler is stopped")
	// ErrNoLog: nobody has a log of the run, or none that can be asked for it.
	ErrNoLog = errors.New("xxljob: no log")
	// ErrNotReady: see Scheduler.Ready and NotReadyError.
	ErrNotReady = errors.New("xxljob: the scheduler is not ready")
	// ErrWaitsForItself: a handler has called Wait for a run that cannot end, or not begin,
	// before its own has ended. That is so for its own run, and for a planned run of the same
	// job with SERIAL_EXECUTION which, by the addresses that its app has at that moment, as
	// far as this node knows, goes to the address where the handler runs, and to no other:
	//
	//   - the run can go to no other address: none else has the handler, or the trigger has
	//     named this one only. With BUSYOVER the run is refused then, and has thus ended;
	//   - FIRST, LAST, FAILOVER or CONSISTENT_HASH choose this address among all;
	//   - NEAREST, where the node of the handler has the job's shard. A shard that moves to
	//     another node before the run is due would take it along;
	//   - SHARDING_BROADCAST, where all are addresses of nodes: it begins when the job is idle
	//     at all of them.
	//
	// Any other run may end without the handler, so Wait waits for it: ROUND, RANDOM and the
	// like, and custom routers, may send it elsewhere, and it is not certain which node sends
	// it until it has been sent. If it does come here after all, the wait ends with its
	// context. The error changes nothing about the run: it begins once the handler has ended.
	//
	// Stop returns it to a handler that has called it with its context, and stops nothing.
	ErrWaitsForItself = errors.New("xxljob: a handler cannot wait for itself")
)

// Errors of stores. A store wraps them with what was attempted; test for them
// with errors.Is.
var (
	// ErrNotFound: there is no such job, run, group or node.
	ErrNotFound = errors.New("xxljob: not found")
	// ErrConflict: the job's version is not the one the caller had read.
	ErrConflict = errors.New("xxljob: conflict: the job has changed since it was read")
	// ErrDuplicateKey: the app has a job with this Key already.
	ErrDuplicateKey = errors.New("xxljob: the key is taken")
	// ErrGroupInUse: the group still has jobs.
	ErrGroupInUse = errors.New("xxljob: the group has jobs")
	// ErrShards: the store was set up with another number of shards.
	ErrShards = errors.New("xxljob: different number of shards")
	// ErrLocked: others hold locks on rows that the call needs; what the call returned beside it
	// has taken effect, and the rest may be tried again.
	ErrLocked = errors.New("xxljob: rows are locked by others")
	// ErrRefused: the store has answered that it takes nothing of a call for what that brings, and
	// would answer so again. Nothing was changed by the transaction that was refused. It may be
	// about one member of a batch, and then the others may be tried without it.
	ErrRefused = errors.New("xxljob: the store refuses what it is given")
	// ErrStoreClosed: what the store goes by was closed under it, such as the pool of connections
	// that it was given. It is for good.
	ErrStoreClosed = errors.New("xxljob: the store is closed")
	// ErrSuperseded: another list applies to the app, of another generation or of the same
	// one, or others name the job that was to be pruned. Nothing was changed.
	ErrSuperseded = errors.New("xxljob: superseded: another list applies to the app")
)

// ErrNoContext is what a call with a nil context returns.
var ErrNoContext = errors.New("xxljob: the context is nil")

// The words of errors: what an error is about, said once, and what would have been right.

// reworded is an error in other words.
type reworded struct {
	text string
	err  error
}

func (r reworded) Error() string { return r.text }
func (r reworded) Unwrap() error { return r.err }

// Reword says an error in other words. It is still that error to errors.Is and errors.As.
func Reword(text string, err error) error { return reworded{text, err} }

// In says in front of an error what it is about. The module's name stays in front of
// that, and is not said again behind it.
func In(what string, err error) error {
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(err.Error(), "xxljob: ")
	return reworded{"xxljob: " + what + ": " + strings.ReplaceAll(text, ": xxljob: ", ": "), err}
}

// Missing is about an error of a call for something, which may be that it is not there.
func Missing(verb, what string, err error) error {
	if IsNotFound(err) {
		return reworded{"xxljob: " + verb + ": " + what + " does not exist", err}
	}
	return In(verb+" "+what, err)
}

func IsNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// InWords is a time as errors write it.
func InWords(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

func SetDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Shorten cuts s to at most n bytes at a rune boundary and marks the cut.
func Shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// OneOf says which names there are, and which of them was meant where only case differs.
func OneOf(given string, names []string) string {
	text := "want one of " + strings.Join(names, ", ")
	meant := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, given) })
	if meant < 0 {
		return text
	}
	return text + "; did you mean " + names[meant] + "?"
}

// Nearest says which of the names was meant by one that there is not, or which there are where none is
// near it.
func Nearest(given string, names []string) string {
	near, least := "", 1+max(1, min(len(given), 40)/4)
	for _, name := range names {
		if n := distance(strings.ToLower(Shorten(given, 40)), strings.ToLower(name)); n < least {
			near, least = name, n
		}
	}
	if near == "" {
		return "there are " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("did you mean %q?", near)
}

// distance is how many bytes have to be put in, taken out or replaced, and how many pairs of neighbours
// exchanged, to make b of a.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// PlainText is text as every store can keep it.
func PlainText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// NotPlain reports whether r is a control character, one that cannot be seen, or one of
// markup.
func NotPlain(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("<>'\"`", r) }

// Texts are one text in English, in Chinese, and in Chinese of traditional characters.
type Texts [3]string

// In returns the text in a language: "en", "zh-CN" or "zh-TW". Any other is English.
func (t Texts) In(lang string) string {
	switch lang {
	case "zh-CN":
		return t[1]
	case "zh-TW":
		return t[2]
	}
	return t[0]
}
