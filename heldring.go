package xxljob

// The ring of the engine, which may be the user's.

import "github.com/xxljob/xxljob/internal/guard"

// heldRing is the ring that is in use.
type heldRing struct {
	TimeRing
	users  bool // not of our own make: it may panic
	panics *guard.Log
	failed func(method string, err error)
}

func newHeldRing(cfg *Config, panics *guard.Log) heldRing {
	r := heldRing{TimeRing: cfg.Ring, users: true, panics: panics, failed: func(method string, err error) {
		cfg.Logger.Error("xxljob: Config.Ring failed and was replaced by the ring of NewTimeRing", "node", cfg.Node, "method", method, "error", err)
	}}
	if _, ours := cfg.Ring.(*timeRing); ours || cfg.Ring == nil {
		r.users = false
		if cfg.Ring == nil {
			r.TimeRing = NewTimeRing()
		}
	}
	return r
}
