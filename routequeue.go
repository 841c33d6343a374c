package xxljob

// Runs that wait for a router of the user's. All of it is guarded by userRouters.mu.

import "time"

// routerKey is a router of the user's, by its name, and a job.
type routerKey struct {
	route string
	jobID int64
}

// routeQueue are the runs of a job that wait for a router's answers. Each gets a call of
// its own, one after the other. It is there while runs wait or a call has not returned.
type routeQueue struct {
	key     routerKey
	waiting []*routeWait // the earliest first
	call    *routeCall   // what has not returned
	timer   *time.Timer  // for the first, where it waits for a call that hangs
}

// routeWait is a run that waits.
type routeWait struct {
	en      *entry
	version int64 // of its job
	addrs   []string
	since   time.Time
}

// routeCall is a call of a router. Nobody waits for it any more where it is about nil.
type routeCall struct{ about *routeWait }
