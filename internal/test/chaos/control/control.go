// Package control is how the supervisor of a chaos test asks its node processes to
// do something: one JSON request and one JSON answer over a Unix socket, a
// connection each. It knows nothing of the scheduler.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// The verbs of a request.
const (
	Ready   = "ready"
	Ensure  = "ensure"  // Job
	Update  = "update"  // ID, Job
	Start   = "start"   // ID
	Stop    = "stop"    // ID
	Remove  = "remove"  // ID
	Trigger = "trigger" // ID, Param, Key, Ahead
	Tx      = "tx"      // ID, Param, Commit
	Kill    = "kill"    // Run
	Step    = "step"    // StepBy
	Hold    = "hold"    // HoldFor: of a store in Postgres
	Rows    = "rows"    // of a store in memory
)

// Request asks for one thing.
type Request struct {
	Verb string `json:"verb"`
	// Until is when nobody waits for the answer any more, by the machine's clock in
	// microseconds: a process that was paused must not carry it out after that.
	Until  int64  `json:"until"`
	ID     int64  `json:"id,omitempty"`
	Run    int64  `json:"run,omitempty"`
	Param  string `json:"param,omitempty"`
	Key    string `json:"key,omitempty"`
	Commit bool   `json:"commit,omitempty"`
	// Ahead has the run kept apart for a second, as one that is due far ahead.
	Ahead bool `json:"ahead,omitempty"`
	// StepBy is how far the process's wall clock is set forward from the machine's,
	// in nanoseconds; negative is back.
	StepBy int64 `json:"stepBy,omitempty"`
	// HoldFor is how long the host keeps all connections of its pool, in nanoseconds.
	HoldFor int64 `json:"holdFor,omitempty"`
	Job     Job   `json:"job,omitzero"`
}

// The kinds of schedules.
const (
	Cron  = "cron"  // every Period from the full minute
	Rate  = "rate"  // every Period
	Delay = "delay" // Period behind the end of the run before
)

// Job is the definition of a job, in words of its own.
type Job struct {
	Name     string `json:"name"`
	App      string `json:"app,omitempty"`
	Kind     string `json:"kind,omitempty"` // empty: triggers only
	Period   int64  `json:"period,omitempty"`
	Block    string `json:"block,omitempty"`
	Route    string `json:"route,omitempty"`
	Param    string `json:"param,omitempty"`
	FireOnce bool   `json:"fireOnce,omitempty"`
	Remote   bool   `json:"remote,omitempty"` // handlers are in processes of their own
	Zone     string `json:"zone,omitempty"`   // of Cron
	// Max is how many runs of a concurrent job may be side by side at an executor.
	Max int `json:"max,omitempty"`
	// NotBefore and NotAfter bound the instants, in milliseconds, and MaxRuns the runs;
	// zero is no bound.
	NotBefore int64 `json:"notBefore,omitempty"`
	NotAfter  int64 `json:"notAfter,omitempty"`
	MaxRuns   int   `json:"maxRuns,omitempty"`
	// What follows the end of a run. The pauses and the timeout are milliseconds, the jitter
	// is in percent.
	Retries   int   `json:"retries,omitempty"`
	Pause     int64 `json:"pause,omitempty"`
	MostPause int64 `json:"mostPause,omitempty"`
	Jitter    int   `json:"jitter,omitempty"`
	Rerun     bool  `json:"rerun,omitempty"`
	Aside     bool  `json:"aside,omitempty"`
	Timeout   int64 `json:"timeout,omitempty"`
	// The jobs that its successes lead to, and those that it runs behind, by their ids and as
	// "app/name". Window, AfterTimeout and LateAfter are milliseconds.
	Children     []int64  `json:"children,omitempty"`
	ChildKeys    []string `json:"childKeys,omitempty"`
	After        []int64  `json:"after,omitempty"`
	AfterKeys    []string `json:"afterKeys,omitempty"`
	Window       int64    `json:"window,omitempty"`
	AfterTimeout int64    `json:"afterTimeout,omitempty"`
	LateAfter    int64    `json:"lateAfter,omitempty"`
	// Nobody says what becomes of it while its service is away; empty is the default.
	Nobody string `json:"nobody,omitempty"`
}

// Answer is what became of a request.
type Answer struct {
	// Error is empty when it was done. Any other outcome is unknown, unless
	// Refused.
	Error   string `json:"error,omitempty"`
	Refused bool   `json:"refused,omitempty"`
	// Never says that the job would have no instant, whoever is asked: its bounds are past.
	Never bool `json:"never,omitempty"`
	// ID, Shard and Next describe a job: Next is its oldest unplanned instant in
	// milliseconds.
	ID    int64 `json:"id,omitempty"`
	Shard int   `json:"shard,omitempty"`
	Next  int64 `json:"next,omitempty"`
	// Run is the run of a trigger.
	Run  int64           `json:"run,omitempty"`
	Rows json.RawMessage `json:"rows,omitempty"`
}

// Err returns the answer's error.
func (a Answer) Err() error {
	if a.Error == "" {
		return nil
	}
	return errors.New(a.Error)
}

// Call asks the process behind the socket. An error means that the outcome is
// unknown.
func Call(ctx context.Context, socket string, r Request) (Answer, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return Answer{}, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		r.Until = deadline.UnixMicro()
		_ = conn.SetDeadline(deadline)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return Answer{}, err
	}
	var a Answer
	if err := json.NewDecoder(conn).Decode(&a); err != nil {
		return Answer{}, fmt.Errorf("no answer to %s: %w", r.Verb, err)
	}
	return a, nil
}

// Serve answers requests by f, each on a goroutine of its own, until the listener
// is closed.
func Serve(ln net.Listener, f func(Request) Answer) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			var r Request
			if err := json.NewDecoder(conn).Decode(&r); err != nil {
				return
			}
			_ = json.NewEncoder(conn).Encode(f(r)) // who asked may be gone
		}()
	}
}
