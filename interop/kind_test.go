package interop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/wire"
)

// outcome is how a run ends: its code, and a text that its message is, or with
// part contains.
type outcome struct {
	code int
	text string
	part bool
}

func (o outcome) fits(msg string) bool {
	return msg == o.text || o.part && strings.Contains(msg, o.text)
}

// kind is one sort of peer and what is expected of it.
type kind struct {
	name string
	base string                    // context path of the admin's address
	argv func(*testing.T) []string // the command, without our flags

	slash     bool          // the registered address ends with a slash
	heartbeat time.Duration // between registrations
	noToken   bool          // serves callers with any token, or none
	identity  bool          // says its app in a header, and wants it of callers
	triggers  []string      // the endpoints that it takes runs at
	list      bool          // reports a list of results, not an object that has it
	ownDate   bool          // results carry another date than the run's
	anyDate   bool          // results are taken by the id alone, whatever their date is
	results   []string      // the keys in which a result's code comes

	manages bool // has a client for jobs

	noHandler string // part of the refusal of an unknown handler
	busy      string // the refusal of an idle beat
	noQueue   string // part of the refusal of SERIAL_EXECUTION while running, "" when it queues
	discard   string // part of the refusal of DISCARD_LATER
	repeat    string // part of the refusal of an id that is queued, "" when it is accepted
	once      bool   // an id that is accepted again runs once all the same
	oneByName bool   // two jobs with one handler spoil each other's runs

	covered outcome // of a run ended by COVER_EARLY
	timeout outcome
	killed  outcome // while it ran
	dropped outcome // killed while it waited; no code when there is no result ever
	idle    outcome // the answer to a kill of nothing; the text is the note
	killRun bool    // a kill is of a run, not of all runs of the job
	thrown  string  // the message of a handler that threw "x", x for %s
	said    string  // the message of a handler that reported "x"

	noLog   string // the text of a log that does not exist
	pastEnd string // toLineNum behind the end: "last" line, "zero", or the "same" as fromLineNum
	early   bool   // isEnd is set at the end of what is there, also while the handler runs

	forgets bool   // a result is lost when the admin is away for 20 s
	keeps   string // pattern of the files in which a killed peer leaves results, "" when it leaves none

	// why lists what is unlike XXL-JOB's own executors, for people.
	why []string
}

// javaKind is XXL-JOB's own library, as of 2.4 and 2.5.
func javaKind(version string) kind {
	return kind{
		name:      "java-" + version,
		base:      "/xxl-job-admin",
		argv:      func(t *testing.T) []string { return append(javaArgv(artifact(t, "java-"+version)), "peer.Peer") },
		slash:     true,
		heartbeat: 30 * time.Second,
		triggers:  []string{"run"},
		list:      true,
		results:   []string{"handleCode"},
		noHandler: "job handler [nobody] not found.",
		busy:      wire.MsgBusy,
		discard:   block.MsgDiscard,
		repeat:    "repeate trigger job, logId:",
		covered:   outcome{code: wire.CodeFail, text: fmt.Sprintf(wire.MsgKilledRunning, block.MsgCover)},
		timeout:   outcome{code: wire.CodeTimeout, text: wire.MsgTimeout},
		killed:    outcome{code: wire.CodeFail, text: fmt.Sprintf(wire.MsgKilledRunning, wire.StopKill)},
		dropped:   outcome{code: wire.CodeFail, text: fmt.Sprintf(wire.MsgKilledQueued, wire.StopKill)},
		idle:      outcome{code: wire.CodeSuccess, text: wire.MsgAlreadyKilled},
		thrown:    "java.lang.IllegalStateException: %s",
		said:      "%s",
		noLog:     wire.MsgNoLog,
		pastEnd:   "last",
		keeps:     "logs/callbacklog/*",
	}
}

// ourKind is the executor of this module: like Java's, but for what it adds.
func ourKind() kind {
	k := javaKind("")
	k.name, k.argv = "ours", oursArgv
	k.results = []string{"executeResult", "handleCode"}
	k.triggers, k.identity = []string{"run", "trigger"}, true
	k.repeat, k.once = "", true
	k.killRun = true
	k.thrown = "panic: %s"
	k.keeps = "spool/*/*/*.json"
	k.why = []string{
		"accepts an id that comes again, and runs it once",
		"kills the one run that our scheduler asks it to kill; Java's, and with a Java admin ours, all runs of the job",
	}
	return k
}

func javaArgv(dir string) []string {
	// Without UsePerfData a JVM has no file under its process number in /tmp. Where another one held
	// that, it said so on its standard output.
	return []string{"java", "-Xmx128m", "-XX:-UsePerfData", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8",
		"-cp", filepath.Join(dir, "classes") + string(os.PathListSeparator) + filepath.Join(dir, "lib", "*")}
}

// javaVersions are those of java/versions, in its order, with what differs.
func javaVersions(t *testing.T) []kind {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("java", "versions"))
	if err != nil {
		t.Fatal(err)
	}
	differs := map[string]func(*kind){
		"2.2.0": func(k *kind) { k.results = []string{"executeResult"} },
		"2.4.2": func(*kind) {},
		"2.5.0": func(*kind) {},
		"3.2.0": func(*kind) {},
		"3.3.2": func(k *kind) {
			k.base = "" // as from 3.4.1 on; the others use the old context path
			k.pastEnd = "zero"
			k.why = []string{
				"answers behind the end of a log with toLineNum = 0: who goes on at toLineNum+1 reads all again",
				"keeps results that it cannot report in /data/applogs, whatever its log path is, and reports those of other executors that it finds there to its own admin (here each has a directory)",
			}
		},
		"3.5.0-SNAPSHOT": func(k *kind) {
			k.base = ""
			k.identity, k.manages = true, true
			k.triggers = []string{"trigger"}
			k.list = false
			k.repeat = "repeat trigger job, logId:"
			k.pastEnd = "zero"
			k.keeps = "logs/callbacklogs/*"
			k.why = []string{
				"says its app with each request, and answers nobody who does not say the same app",
				"knows /trigger and no /run, and answers that it does not know the path",
				"reports an object with a list of results, which have logDateTime for logDateTim",
				"refuses an id that is queued in other words: repeat, not repeate",
				"answers behind the end of a log with toLineNum = 0: who goes on at toLineNum+1 reads all again",
			}
		},
	}
	var kinds []kind
	for line := range strings.Lines(string(b)) {
		version := strings.Fields(line)[0]
		if name := "java-" + version; name == unpublished && mayMiss(missing(name)) {
			continue // as TestMain has said
		}
		change, ok := differs[version]
		if !ok {
			t.Fatalf("version %s of java/versions has no row in kind_test.go", version)
		}
		k := javaKind(version)
		change(&k)
		kinds = append(kinds, k)
	}
	return kinds
}

// goKind is xxl-job-executor-go v1.2.0, see docs/xxl-job.md, the Go client.
func goKind() kind {
	panicked := func(text string) outcome { return outcome{code: wire.CodeFail, text: "task panic:" + text} }
	return kind{
		name:      "go",
		base:      "/xxl-job-admin",
		argv:      func(t *testing.T) []string { return []string{filepath.Join(artifact(t, "go"), "peer")} },
		heartbeat: 20 * time.Second,
		triggers:  []string{"run"},
		list:      true,
		results:   []string{"executeResult", "handleCode"},
		noToken:   true,
		anyDate:   true,
		noHandler: "Task not registered",
		busy:      "Task is busy",
		noQueue:   "There are tasks running",
		discard:   "There are tasks running",
		repeat:    "There are tasks running",
		oneByName: true,
		timeout:   panicked("context deadline exceeded"),
		killed:    panicked("context canceled"),
		idle:      outcome{code: wire.CodeFail, text: "Task kill err"},
		thrown:    "task panic:%s",
		said:      "task panic:%s",
		pastEnd:   "last",
		forgets:   true,
		why: []string{
			"registers every 20 s, without the slash",
			"checks no token",
			"refuses a run by a list of results instead of an answer",
			"has no queue: SERIAL_EXECUTION is refused while the job runs, as DISCARD_LATER is",
			"has one task for each handler: a second job, or COVER_EARLY, overwrites what its run reports",
			"has no timeout of its own and no 502: a handler sees its context end, and can only panic (500)",
			"refuses a kill when nothing runs; never says that a run was killed",
			"has no log but what the program answers in a hook",
			"reports once: a result is lost for ever while the admin is away, and its run stays dispatched",
		},
	}
}

// pythonKind is pyxxl 0.4.8.
func pythonKind() kind {
	return kind{
		name: "python",
		base: "/xxl-job-admin",
		argv: func(t *testing.T) []string {
			dir := artifact(t, "python")
			return []string{filepath.Join(dir, "bin", "python"), filepath.Join(dir, "main.py")}
		},
		heartbeat: 10 * time.Second,
		triggers:  []string{"run"},
		list:      true,
		results:   []string{"executeResult", "handleCode"},
		noToken:   true,
		ownDate:   true,
		anyDate:   true,
		noHandler: "handler nobody not found.",
		busy:      "is running.",
		discard:   "is already executing and this has been discarded.",
		covered:   outcome{code: wire.CodeFail, text: "CancelledError"},
		timeout:   outcome{code: wire.CodeFail, text: "TimeoutError"},
		killed:    outcome{code: wire.CodeFail, text: "CancelledError"},
		idle:      outcome{code: wire.CodeSuccess},
		thrown:    "%s",
		said:      "%s",
		noLog:     "No such logid logs.",
		pastEnd:   "same",
		early:     true,
		why: []string{
			"registers every 10 s, without the slash",
			"checks no token, and sends that of G0 beside its own",
			"reports with the time at which the handler began for the date of the run",
			"reports a timeout with code 500, not 502, and kills and COVER_EARLY in the same words",
			"reports nothing for runs that are killed while they wait",
			"loses results that it has not reported when it is killed: their runs stay dispatched",
			"does not know an id again: sent twice, it runs twice",
			"says isEnd at the end of what is there, also while the handler runs",
			"answers behind the end of a log with toLineNum = fromLineNum: who goes on at toLineNum+1 misses a line",
			"tries to report 3 times, 5 s apart, unless configured (here 10), and then for as long that the run has failed, also when it has not",
		},
	}
}

// kinds are all peers.
func kinds(t *testing.T) []kind {
	t.Helper()
	return append(javaVersions(t), goKind(), pythonKind(), ourKind())
}
