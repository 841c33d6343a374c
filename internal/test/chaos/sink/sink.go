// Package sink has those who are told of alarms in a chaos test: a server of HTTP and one of
// SMTP, over TCP. Half of the time they refuse a message, or leave whoever sends it waiting
// until that gives up. They outlive the nodes, and keep what they have accepted.
//
// In: messages. Out: what was accepted, for the auditor.
package sink

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
)

// mood is what a sink does with a message.
type mood int

const (
	accepts mood = iota
	refuses
	hangs
)

// patience is how often in turn a sink does not accept what it is told of a job: senders
// wait twice as long each time, and a test has an end.
const patience = 2

// book is what a sink has accepted, and how it is disposed.
type book struct {
	name string

	mu     sync.Mutex
	rnd    *rand.Rand    // guarded by mu
	calm   bool          // guarded by mu
	turned map[int64]int // guarded by mu: by job, how often in turn nothing was accepted
	told   []audit.Told  // guarded by mu
	counts map[mood]int  // guarded by mu
}

func newBook(name string, seed uint64) *book {
	return &book{name: name, rnd: rand.New(rand.NewPCG(seed, 1)), turned: map[int64]int{}, counts: map[mood]int{}}
}

// mood chooses what to do with a message about a job.
func (b *book) mood(job int64) mood {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := accepts
	if !b.calm && b.turned[job] < patience {
		m = []mood{accepts, accepts, accepts, accepts, refuses, refuses, hangs, hangs}[b.rnd.IntN(8)]
	}
	b.turned[job]++
	if m == accepts {
		b.turned[job] = 0
	}
	b.counts[m]++
	return m
}

// surly reports whether whoever comes is sent away before it says anything: rarely.
func (b *book) surly() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.calm && b.rnd.IntN(10) == 0
}

// accept writes down what was accepted, before it is answered.
func (b *book) accept(t audit.Told) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.Sink, t.At = b.name, time.Now().UnixMicro()
	b.told = append(b.told, t)
}

// Name is that of the sink.
func (b *book) Name() string { return b.name }

// Calm has the sink accept everything from now on.
func (b *book) Calm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calm = true
}

// Told is what was accepted so far.
func (b *book) Told() []audit.Told {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]audit.Told(nil), b.told...)
}

// String says what the sink has done.
func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("%s accepted %d, refused %d and left %d waiting", b.name, b.counts[accepts], b.counts[refuses], b.counts[hangs])
}

// ofTrouble reports whether the name of a message is that of one about a trouble of a node, which is
// of no run. A cluster under faults has many, and all of them are accepted.
func ofTrouble(id string) bool { return strings.HasPrefix(id, "xxljob-t") }

// troubleOf is the name of a message about a trouble, and the row in it, "xxljob-t7-rule"; none where a
// node tells of what it has seen itself, whose messages have a hash there.
func troubleOf(text string) (id string, alarm int64) {
	id, _, _ = strings.Cut(text, " ")
	row, _, _ := strings.Cut(strings.TrimPrefix(id, "xxljob-t"), "-")
	if len(row) < 16 { // the length of a hash
		alarm, _ = strconv.ParseInt(row, 10, 64)
	}
	return id, alarm
}

// alarmOf is the row in the name of a message, "xxljob-7-rule".
func alarmOf(id string) (alarm int64, err error) {
	_, err = fmt.Sscanf(id, "xxljob-%d-", &alarm)
	return alarm, err
}

// Alarms are the rows that there must have been for what was accepted, where nobody else can
// say which there were.
func (b *book) Alarms() (rows []audit.Alarm) {
	seen := map[int64]bool{}
	for _, t := range b.Told() {
		if !seen[t.Alarm] && t.Message == "" {
			seen[t.Alarm] = true
			rows = append(rows, audit.Alarm{ID: t.Alarm, Run: t.Run, Cause: t.Cause, Status: audit.AlarmTold, Instant: t.Instant})
		}
	}
	return rows
}
