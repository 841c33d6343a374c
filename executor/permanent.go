package executor

import "errors"

// Causes a handler's context is cancelled with; context.Cause(ctx) returns
// them. By then the run's result is recorded, and what the handler returns
// does not matter any more.
var (
	// ErrKilled says that the admin stopped the run.
	ErrKilled = errors.New("xxljob: executor: run killed")
	// ErrTimeout says that the run took longer than its timeout.
	ErrTimeout = errors.New("xxljob: executor: run timed out")
	// ErrCovered says that a later run of a COVER_EARLY job took its place.
	ErrCovered = errors.New("xxljob: executor: run covered by a later one")
	// ErrShutdown says that the executor stopped before the handler returned.
	ErrShutdown = errors.New("xxljob: executor: shut down")
)

// ErrStopped is returned by Handle after Stop.
var ErrStopped = errors.New("xxljob: executor: stopped")

var errGoexit = errors.New("job handler ended its goroutine without returning")

type permanent struct{ err error }

func (f *permanent) Error() string { return f.err.Error() }
func (f *permanent) Unwrap() error { return f.err }

// Permanent marks an error as final: the run fails, and an admin that understands
// wire.CallbackRequest.NoRetry does not try again. Other admins see an ordinary
// failure. The text is that of err; Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

// IsPermanent reports whether err, or an error it wraps, was marked by Permanent.
func IsPermanent(err error) bool {
	_, ok := errors.AsType[*permanent](err)
	return ok
}
