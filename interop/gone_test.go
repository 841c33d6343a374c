package interop_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/route"
)

// redelivery is how long after an outage a result may come: Java executors try every
// 30 s.
const redelivery = 50 * time.Second

// longer is a parameter of the handler sleep for which another scheduler starts.
const longer = "14000"

// inTouch waits until every peer was heard of within the time in which it beats, so
// that no more than one beat is missing after the outage that follows: peers that
// three are missing of are dead.
func (s *stage) inTouch(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, "all peers beat", func() bool {
		regs := s.registrations(t)
		for _, r := range regs {
			if time.Since(r.Updated) > 33*time.Second {
				return false
			}
		}
		return len(regs) == len(s.peers)
	})
}

// delivered waits for the result of a run that ended while the scheduler was away.
// Where the peer has lost it, the record stays as it is.
func (s *stage) delivered(t *testing.T, id int64, text string) {
	t.Helper()
	if !s.forgets {
		back := time.Now()
		s.compare(t, s.endedWithin(t, redelivery, id), xxljob.StateSucceeded, success(text))
		t.Logf("reported after %v", time.Since(back).Round(time.Second))
		return
	}
	s.wellEnded(t, s.trigger(t, s.job(t, "count", "behind it"), 1), "") // a later one is reported
	s.staysDispatched(t, id)
}

// hostAway has a run end while nobody listens to its peer.
func hostAway(t *testing.T, s *stage) {
	s.inTouch(t)
	id := s.begun(t, s.job(t, "sleep", meanwhile))
	s.isDispatched(t, id)
	s.down()
	time.Sleep(20 * time.Second)
	s.peers[0].hasPhase(t, id, "end")
	s.up()
	s.delivered(t, id, slept)
}

// replaced stops the scheduler, and starts another one on the store after a while.
func (s *stage) replaced(t *testing.T, while func()) {
	t.Helper()
	s.down()
	s.end(t)
	while()
	s.mount(s.next(t))
	s.up()
	s.start(t)
}

// takesOver stops the scheduler and starts another one on its store. One run ends
// between the two, and one later.
func takesOver(t *testing.T, s *stage) {
	s.inTouch(t)
	early := s.begun(t, s.job(t, "sleep", meanwhile))
	late := s.begun(t, s.job(t, "sleep2", longer))
	s.isDispatched(t, early)
	s.isDispatched(t, late)
	s.replaced(t, func() {
		s.peers[0].hasPhase(t, early, "end")
		time.Sleep(time.Second) // it is tried to be reported once, to nobody
	})
	s.wellEnded(t, late, "slept "+longer)
	s.delivered(t, early, slept)
	if len(s.registrations(t)) != len(s.peers) {
		t.Errorf("registered are %+v", s.registrations(t))
	}
}

// hasContent reports whether a peer has written a file, and not only made it: a result that
// was not written is lost with its process.
func hasContent(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Size() > 0
}

// isKept waits until a peer has written a result into a file, where it does so.
func (s *stage) isKept(t *testing.T, p *instance) {
	t.Helper()
	if s.keeps == "" {
		return
	}
	eventually(t, time.Minute, "the result is in a file", func() bool {
		files, err := filepath.Glob(filepath.Join(p.dir, s.keeps))
		return err == nil && slices.ContainsFunc(files, hasContent)
	})
}

// killedAndRestarted kills a peer with one run under way and one whose result is not
// reported yet, and starts another process at the same address.
func killedAndRestarted(t *testing.T, s *stage) {
	s.inTouch(t)
	p := s.peers[0]
	lost := s.begun(t, s.job(t, "sleep", forever))
	kept := s.begun(t, s.job(t, "sleep2", meanwhile))
	s.isDispatched(t, lost)
	s.isDispatched(t, kept)
	s.down()
	p.hasPhase(t, kept, "end")
	s.isKept(t, p)
	p.process.kill()
	s.up()

	// It is registered still. The beat is the first to meet its dead connections; a
	// trigger that met one might have been heard, as far as anybody knows.
	over := s.trigger(t, s.job(t, "echo", "to the second", routed(route.Failover)), 1)
	s.wellEnded(t, over, "to the second")
	if run := s.now(t, over); s.at(t, run) != s.peers[1] || !strings.Contains(run.TriggerMsg, p.registers()+": error:") {
		t.Errorf("run at %s:\n%s", run.Address, run.TriggerMsg)
	}
	job := s.job(t, "echo", "to the first")
	s.turnedAway(t, s.trigger(t, job, 0), xxljob.StateRefused, "connection refused")

	before := s.registration(t, p)
	p.launch(t, s.addr)
	s.there(t, p)
	if s.once {
		eventually(t, time.Minute, "the new process is registered", func() bool {
			now := s.registration(t, p)
			return now != nil && now.BootID != before.BootID
		})
	}
	s.wellEnded(t, s.trigger(t, job, 1), "to the first")
	switch {
	case s.keeps != "":
		s.compare(t, s.endedWithin(t, redelivery, kept), xxljob.StateSucceeded, success(slept))
	default:
		s.staysDispatched(t, kept)
	}
	// Nobody reports what was interrupted. An operator ends the record, where the peer
	// answers well to a kill of what it does not have.
	s.staysDispatched(t, lost)
	if s.idle.code == 200 {
		s.kill(t, lost)
		s.killedByUs(t, lost, s.killed)
		return
	}
	if err := s.Kill(t.Context(), lost); err == nil || !strings.Contains(err.Error(), s.idle.text) {
		t.Errorf("kill of what the peer does not have: %v, want %q", err, s.idle.text)
	}
	s.staysDispatched(t, lost)
}

// leave ends one peer after the other as a deployment does. What is triggered
// afterwards goes elsewhere at once, and then nowhere.
func leave(t *testing.T, s *stage) {
	all := s.job(t, "shard", "", routed(route.ShardingBroadcast))
	s.peers[0].process.terminate(t)
	if r := s.registration(t, s.peers[0]); r != nil {
		t.Errorf("registered is %+v", r)
	}
	id := s.trigger(t, all, 1)
	s.wellEnded(t, id, "0/1")
	if at := s.at(t, s.now(t, id)); at != s.peers[1] {
		t.Errorf("sent to %s", at.registers())
	}
	s.peers[1].process.terminate(t)
	if regs := s.registrations(t); len(regs) != 0 {
		t.Errorf("registered are %+v", regs)
	}
	// Who has left may be one that restarts: so the run waits until nobody was there for Dead.
	waits := s.trigger(t, all, 0)
	time.Sleep(2 * time.Second)
	if run := s.now(t, waits); run.State != xxljob.StatePlanned {
		t.Errorf("run %d is %v, want planned: %s", waits, run.State, run.TriggerMsg)
	}
	if err := s.Kill(t.Context(), waits); err != nil {
		t.Error(err)
	}
	if run := s.ended(t, waits); run.State != xxljob.StateCancelled {
		t.Errorf("run %d is %v, want cancelled", waits, run.State)
	}
}
