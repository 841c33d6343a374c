package route

import "slices"

// NewBroadcast returns the router SHARDING_BROADCAST: all addresses. Each gets
// one shard of the trigger, its index being its place in the list.
//
// Sharding thus is no special case of routing, just more than one target.
func NewBroadcast() Func { return slices.Clip[[]string] }
