package store

import "errors"

// ErrLocked: others hold locks on rows that the call needs; what the call returned beside it
// has taken effect, and the rest may be tried again. A store wraps it with what was
// attempted; test for it with errors.Is.
var ErrLocked = errors.New("xxljob: rows are locked by others")
