package route

import "slices"

// NewFailover returns the router FAILOVER: all addresses, in the order of the
// list. The caller asks them one after the other whether they are alive (beat)
// and takes the first that is; asking is I/O, and so no business of a router.
func NewFailover() Func { return slices.Clip[[]string] }

// NewBusyover returns the router BUSYOVER: all addresses, in the order of the
// list. The caller asks them one after the other whether the job is idle there
// (idleBeat) and takes the first where it is.
func NewBusyover() Func { return slices.Clip[[]string] }
