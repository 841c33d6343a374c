package route

import (
	"context"
	"slices"
)

// SelfFirst is the router NEAREST: the node's own attached address if it is in
// the list, else what a fallback says. A job that the deciding node can run
// itself then needs no hand-over to another node.
//
// XXL-JOB has no such strategy, for its admin never executes.
type SelfFirst struct {
	self     string
	fallback Router
}

// NewNearest returns the router NEAREST for the node with the attached address
// self; an empty self is never chosen. A nil fallback is a ROUND of its own.
func NewNearest(self string, fallback Router) *SelfFirst {
	if fallback == nil {
		fallback = NewRound()
	}
	return &SelfFirst{self: self, fallback: fallback}
}

// Route returns the node itself if it is among addrs, else the fallback's
// choice.
func (s *SelfFirst) Route(ctx context.Context, jobID int64, addrs []string) ([]string, error) {
	if len(addrs) == 0 {
		return nil, ErrNoAddress
	}
	if s.self != "" {
		if i := slices.Index(addrs, s.self); i >= 0 {
			return only(addrs, i), nil
		}
	}
	return s.fallback.Route(ctx, jobID, addrs)
}

// Forget passes the job on to the fallback, if that remembers jobs.
func (s *SelfFirst) Forget(jobID int64) {
	if f, ok := s.fallback.(Forgetter); ok {
		f.Forget(jobID)
	}
}
