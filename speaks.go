package xxljob

// Who may speak for which app. Input: a caller, as its token has shown it. Output: whether
// what it says of the app's executors, runs and jobs counts.

import (
	"fmt"

	"github.com/xxljob/xxljob/wire"
)

// Words for a caller that may not speak for an app, and for the log.
const (
	msgSharedToken = "app %q runs inside the scheduler: a token that all share does not speak for it, it needs one of its own"
	logSharedToken = "xxljob: a caller with the token that all share was refused, for the app is attached to a scheduler: give it a token of its own in Config.Tokens"
)

// speaksFor reports whether a caller may do something for an app.
func (s *scheduler) speaksFor(caller wire.Caller, app string) bool {
	return s.whyNot(caller, app) == ""
}

// whyNot says to a caller why it may not speak for an app, and nothing where it may. A
// token that all share, or none (Config.Insecure), speaks for apps that have no token of
// their own and are not attached at this moment: whoever has it may name any app, and the
// host's handlers are not everybody's.
func (s *scheduler) whyNot(caller wire.Caller, app string) string {
	switch {
	case caller.Scope != "" && caller.Scope == app:
		return ""
	case caller.Scope != "", caller.App != "" && caller.App != app, len(s.cfg.Tokens[app]) > 0:
		return wire.MsgTokenWrong
	case !s.isAttached(app):
		return ""
	}
	if s.rarely.lets("shared token: " + app) {
		s.log.Warn(logSharedToken, "app", app)
	}
	return fmt.Sprintf(msgSharedToken, app)
}

// isAttached reports whether an app's handlers run inside a scheduler's process: this one,
// or that of another node which lives, as far as this node has seen.
func (s *scheduler) isAttached(app string) bool {
	if e := s.attached.get(app); e != nil && (e != Executor(s.own) || len(e.Handlers()) > 0) {
		return true // a node that only schedules has an executor too, without handlers
	}
	return s.leases.hasElsewhere(app)
}
