package interop_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/wire"
)

// stage is peers of a kind at a scheduler, mostly two. Jobs go to the first of them, unless
// they say otherwise: peers are in the order of their addresses.
type stage struct {
	kind
	*host
	peers  []*instance
	jobs   int // so far
	starts starts
}

func newStage(t *testing.T, k kind, store xxljob.Store, peers int) *stage {
	t.Helper()
	return newStageWithin(t, k, store, peers, xxljob.ClusterConfig{})
}

// newStageWithin has a scheduler with other bounds for silent peers.
func newStageWithin(t *testing.T, k kind, store xxljob.Store, peers int, bounds xxljob.ClusterConfig) *stage {
	t.Helper()
	s := &stage{kind: k, host: newHost(t, store, bounds), starts: starts{}}
	var ports []int
	for range peers {
		ports = append(ports, freePort(t))
	}
	slices.Sort(ports)
	for _, port := range ports {
		p := newInstance(t, k, port)
		p.launch(t, s.addr)
		s.peers = append(s.peers, p)
	}
	for _, p := range s.peers {
		s.there(t, p)
	}
	return s
}

// there waits until a peer has registered and answers.
func (s *stage) there(t *testing.T, p *instance) {
	t.Helper()
	eventually(t, time.Minute, p.registers()+" registers", func() bool {
		p.lives(t)
		return s.registration(t, p) != nil
	})
	c, err := wire.NewExecutorClient(p.registers(), wire.ClientConfig{App: theApp, Token: theToken})
	if err != nil {
		t.Fatal(err)
	}
	p.answers(t, c)
}

// registration is that of a peer, or nil.
func (s *stage) registration(t *testing.T, p *instance) *xxljob.Registration {
	t.Helper()
	for _, r := range s.registrations(t) {
		if r.Address == p.registers() {
			return &r
		}
	}
	return nil
}

func (s *stage) registrations(t *testing.T) []xxljob.Registration {
	t.Helper()
	regs, err := s.store.Registrations(t.Context(), xxljob.RegistrationFilter{App: theApp})
	if err != nil {
		t.Fatal(err)
	}
	return regs
}

// job adds a job without a schedule.
func (s *stage) job(t *testing.T, handler, param string, more ...func(*xxljob.Job)) xxljob.Job {
	t.Helper()
	job := xxljob.Job{App: theApp, Name: t.Name(), Handler: handler, Param: param, Route: route.First}
	for _, change := range more {
		change(&job)
	}
	s.jobs++
	job.Key = strconv.Itoa(s.jobs)
	job, err := s.AddJob(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func routed(by string) func(*xxljob.Job)       { return func(j *xxljob.Job) { j.Route = by } }
func blocked(by string) func(*xxljob.Job)      { return func(j *xxljob.Job) { j.Block = by } }
func within(d time.Duration) func(*xxljob.Job) { return func(j *xxljob.Job) { j.Timeout = d } }

// trigger triggers a run whose handler has to be started as often as said. param, when
// given, takes the place of the job's.
func (s *stage) trigger(t *testing.T, job xxljob.Job, starts int, param ...string) int64 {
	t.Helper()
	var by xxljob.Trigger
	if len(param) > 0 {
		by.Param = &param[0]
	}
	ids, err := s.Trigger(t.Context(), job.ID, by)
	if err != nil {
		t.Fatal(err)
	}
	s.starts[ids[0]] += starts // an id may have been another run's
	return ids[0]
}

// begun triggers a run and waits until its handler is started, by the first peer.
func (s *stage) begun(t *testing.T, job xxljob.Job, param ...string) int64 {
	t.Helper()
	id := s.trigger(t, job, 1, param...)
	s.peers[0].hasStarted(t, id)
	return id
}

// now is a run as it is recorded.
func (s *stage) now(t *testing.T, id int64) xxljob.Run {
	t.Helper()
	run, err := s.store.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// ended waits until a run has ended.
func (s *stage) ended(t *testing.T, id int64) xxljob.Run {
	t.Helper()
	return s.endedWithin(t, 30*time.Second, id)
}

func (s *stage) endedWithin(t *testing.T, patience time.Duration, id int64) xxljob.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run, err := s.Wait(ctx, id)
	if err != nil {
		run = s.now(t, id)
		t.Fatalf("run %d is %v: %v%s\n%s", id, run.State, err, &stalls, run.TriggerMsg)
	}
	return run
}

// is waits for the end of a run and compares what is recorded of it with any of the
// outcomes.
func (s *stage) is(t *testing.T, id int64, state xxljob.State, want ...outcome) {
	t.Helper()
	s.compare(t, s.ended(t, id), state, want...)
}

func (s *stage) compare(t *testing.T, run xxljob.Run, state xxljob.State, want ...outcome) {
	t.Helper()
	if run.State != state || !slices.ContainsFunc(want, func(o outcome) bool { return o.fits(run.HandleMsg) }) {
		t.Errorf("run %d (%s) is %v: %q, want %v: %v\n%s", run.ID, run.Handler, run.State, run.HandleMsg, state, want, run.TriggerMsg)
	}
}

// wellEnded waits until a run has succeeded with a text.
func (s *stage) wellEnded(t *testing.T, id int64, text string) {
	t.Helper()
	s.is(t, id, xxljob.StateSucceeded, success(text))
}

// turnedAway waits until a run was refused in the peer's words.
func (s *stage) turnedAway(t *testing.T, id int64, state xxljob.State, text string) {
	t.Helper()
	if run := s.ended(t, id); run.State != state || !strings.Contains(run.TriggerMsg, text) {
		t.Errorf("run %d is %v, want %v because of %q\n%s", id, run.State, state, text, run.TriggerMsg)
	}
}

// staysDispatched checks that nothing is recorded of a run but that a peer has it: a
// result that is lost is not made up.
func (s *stage) staysDispatched(t *testing.T, id int64) {
	t.Helper()
	if run := s.now(t, id); run.State != xxljob.StateDispatched {
		t.Errorf("run %d is %v: %q, want dispatched", id, run.State, run.HandleMsg)
	}
}

// isDispatched waits until it is recorded that a peer has accepted a run.
func (s *stage) isDispatched(t *testing.T, id int64) {
	t.Helper()
	eventually(t, time.Minute, "the run is dispatched", func() bool { return s.now(t, id).State == xxljob.StateDispatched })
}

// counted compares how often handlers were started, at both peers.
func (s *stage) counted(t *testing.T) {
	t.Helper()
	var all []entry
	for _, p := range s.peers {
		all = append(all, p.journal(t)...)
	}
	s.starts.compare(t, all)
}

// at is the peer that a run was sent to.
func (s *stage) at(t *testing.T, run xxljob.Run) *instance {
	t.Helper()
	for _, p := range s.peers {
		if p.registers() == run.Address {
			return p
		}
	}
	t.Fatalf("run %d was sent to %q", run.ID, run.Address)
	return nil
}

// recorded is the state of a run that a peer has reported in these words.
func recorded(o outcome) xxljob.State {
	switch {
	case o.code == wire.CodeSuccess:
		return xxljob.StateSucceeded
	case o.code == wire.CodeTimeout:
		return xxljob.StateTimedOut
	case wire.IsKilled(o.text):
		return xxljob.StateKilled
	}
	return xxljob.StateFailed
}

// refusalState is the state of a run that a peer has refused in these words.
func refusalState(text string) xxljob.State {
	if block.IsDiscard(text) {
		return xxljob.StateDiscarded
	}
	return xxljob.StateRefused
}
