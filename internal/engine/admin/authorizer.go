package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/wire"
)

// Who may speak for which app. Input: a caller, as its token has shown it. Output: whether
// what it says of the app's executors, runs and jobs counts.

// Words for a caller that may not speak for an app, and for the log.
const (
	msgSharedToken = "app %q runs inside the scheduler: a token that all share does not speak for it, it needs one of its own"
	msgNotLooked   = "this scheduler has just begun and does not know yet which apps are attached elsewhere, try again in a moment: a token that all share does not speak for those"
	logSharedToken = "xxljob: a caller with the token that all share was refused, for the app is attached to a scheduler: give it a token of its own in Config.HTTP.Tokens"
)

// Authorizer decides who speaks for an app.
type Authorizer struct {
	*core.Core
	Attached *registry.AttachedSet
	Own      core.Executor
	rarely   loop.LogLimiter // what the log is not to be filled with
}

// NewAuthorizer makes it; own is the scheduler's own executor.
func NewAuthorizer(s *core.Core, attached *registry.AttachedSet, own core.Executor) *Authorizer {
	return &Authorizer{Core: s, Attached: attached, Own: own}
}

// whyNot says to a caller why it may not speak for an app, and nothing where it may. A
// token that all share, or none (Config.HTTP.Insecure), speaks for apps that have no token of
// their own and are not attached at this moment: whoever has it may name any app, and the
// host's handlers are not everybody's. later is set where it is so at this moment only.
func (s *Authorizer) whyNot(caller wire.Caller, app string) (why string, later bool) {
	switch {
	case caller.Scope != "" && caller.Scope == app:
		return "", false
	case caller.Scope != "", caller.App != "" && caller.App != app, len(s.Cfg.HTTP.Tokens[app]) > 0:
		return wire.MsgTokenWrong, false
	case s.isAttached(app):
		if s.rarely.Allow("shared token: " + app) {
			s.Logger.Warn(logSharedToken, "app", app)
		}
		return fmt.Sprintf(msgSharedToken, app), true
	case s.Life.Running() && !s.Leases.HasLooked():
		return msgNotLooked, true
	}
	return "", false
}

// lookPatience is how long a caller waits for a scheduler that has just started to know the
// others; peers wait for 3 s.
const lookPatience = 2 * time.Second

// callerOf returns who has sent a request. One with a token that all share waits until this
// node knows which apps are attached elsewhere.
func (s *Authorizer) callerOf(ctx context.Context) wire.Caller {
	caller, _ := wire.CallerFrom(ctx)
	if caller.Scope != "" || !s.Life.Running() || s.Leases.HasLooked() {
		return caller
	}
	timer := time.NewTimer(lookPatience)
	defer timer.Stop()
	select {
	case <-s.Leases.Seen.Looked:
	case <-timer.C:
	case <-ctx.Done():
	}
	return caller
}

// isAttached reports whether an app's handlers run inside a scheduler's process: this one,
// or that of another node which lives, as far as this node has seen.
func (s *Authorizer) isAttached(app string) bool {
	if e := s.Attached.Get(app); e != nil && (e != s.Own || len(e.Handlers()) > 0) {
		return true // a node that only schedules has an executor too, without handlers
	}
	return s.Leases.HasElsewhere(app)
}

// WarnOfJobsAPI says which apps may manage jobs, and have no caller who could.
func (s *Authorizer) WarnOfJobsAPI() {
	for _, app := range s.Cfg.HTTP.JobsAPI {
		if len(s.Cfg.HTTP.Tokens[app]) == 0 && s.isAttached(app) && s.rarely.Allow("jobs API: "+app) {
			s.Logger.Warn("xxljob: nobody can manage the jobs of an app in Config.HTTP.JobsAPI over HTTP: the app is attached to a scheduler, so the shared token does not speak for it; give it its own token in Config.HTTP.Tokens", "app", app)
		}
	}
}

// WarnOfDefaultToken says at each start what a migration has to come to an end of.
func (s *Authorizer) WarnOfDefaultToken() {
	for app, tokens := range s.Cfg.HTTP.Tokens {
		if slices.Contains(tokens, wire.DefaultToken) {
			s.Logger.Warn("xxljob: the publicly known default token of XXL-JOB's samples is in use", "app", app)
		}
	}
}
