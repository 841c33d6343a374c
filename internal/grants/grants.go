// Package grants says who calls a verb, for the verb to check what that caller may do.
//
// Each verb that stores a parameter takes Grants as an argument: its zero value may nothing, and
// the host process says that it is itself (Host). A Scheduler's own methods have no such argument,
// since they are the host's; who calls them for somebody else, as the console does, has the context
// say for whom (In), so that a Scheduler which a host has wrapped passes it on.
package grants

import "context"

// Caller is what somebody may do who is not the host.
type Caller interface {
	// Sees reports whether the caller may see jobs of the app, Runs whether it may run them with a
	// parameter of its own, and Edits whether it may edit them.
	Sees(app string) bool
	Runs(app string) bool
	Edits(app string) bool
	// Scripts reports whether the caller may write scripts of the app, and say what they are given.
	Scripts(app string) bool
	// Reveals reports whether the caller may show what is hidden in jobs of the app.
	Reveals(app string) bool
	// Hides reports whether the caller is not shown a parameter of a job of the app.
	Hides(app, param string) bool
}

// Grants are what the caller of a verb may do. The zero value may nothing.
type Grants struct {
	host   bool
	caller Caller
	keeps  bool
}

// Host are the grants of the process itself, which may do everything.
func Host() Grants { return Grants{host: true} }

// Of are those of a caller; one that is nil may nothing.
func Of(c Caller) Grants { return Grants{caller: c} }

// Keeping are the same for an edit with which the caller gives no parameter: the job keeps the one that it
// has, which the caller may not know.
func (g Grants) Keeping() Grants {
	g.keeps = true
	return g
}

// Keeps reports whether the caller gives no parameter, whatever the definition says.
func (g Grants) Keeps() bool { return g.keeps }

// All reports whether it is the host who calls.
func (g Grants) All() bool { return g.host }

// Sees is as that of Caller, and so are the others.
func (g Grants) Sees(app string) bool { return g.host || g.caller != nil && g.caller.Sees(app) }

func (g Grants) Runs(app string) bool { return g.host || g.caller != nil && g.caller.Runs(app) }

func (g Grants) Edits(app string) bool { return g.host || g.caller != nil && g.caller.Edits(app) }

func (g Grants) Scripts(app string) bool { return g.host || g.caller != nil && g.caller.Scripts(app) }

func (g Grants) Reveals(app string) bool { return g.host || g.caller != nil && g.caller.Reveals(app) }

func (g Grants) Hides(app, param string) bool {
	return !g.host && (g.caller == nil || g.caller.Hides(app, param))
}

type key struct{}

// In returns a context in which methods of a Scheduler are called for somebody with the grants.
func In(ctx context.Context, g Grants) context.Context { return context.WithValue(ctx, key{}, g) }

// From are the grants that In has put into a context: those of the host where it was not called,
// since then nobody else has asked. A nil context is the host's.
func From(ctx context.Context) Grants {
	if ctx == nil {
		return Host()
	}
	g, ok := ctx.Value(key{}).(Grants)
	if !ok {
		return Host()
	}
	return g
}
