package wire

import "sync/atomic"

// What an executor has shown of its generation. Input: its answers. Output: words.

// observed is what the answers of one executor have shown so far. It is safe for concurrent
// use.
type observed struct {
	path atomic.Int32 // under which it knows triggers; see the constants
	logs atomic.Int32 // under which key it has lines of logs
	ours atomic.Bool  // it has named its boot id
}

// What observed.path and observed.logs are: nothing yet, as earlier generations have it, or as
// later ones.
const (
	unobserved int32 = iota
	asEarlier        // /run; "content" alone
	asLater          // /trigger; "data" alone
)

// sawPath notes the path at which a trigger was understood. An executor that has another one
// than before has been replaced: what else was seen of it counts no more.
func (o *observed) sawPath(trigger bool) {
	now := asEarlier
	if trigger {
		now = asLater
	}
	if was := o.path.Swap(now); was != unobserved && was != now {
		o.logs.Store(unobserved)
		o.ours.Store(false)
	}
}

// sawLog notes under which key lines of a log came. Under both they say nothing.
func (o *observed) sawLog(keys logKeys) {
	switch keys {
	case logKeys{content: true}:
		o.logs.Store(asEarlier)
	case logKeys{data: true}:
		o.logs.Store(asLater)
	}
}

// words are those of ExecutorClient.Generation.
func (o *observed) words() string {
	path, logs := o.path.Load(), o.logs.Load()
	switch {
	case o.ours.Load():
		return "xxljob"
	case path == asLater:
		return "3.5"
	case logs == asEarlier:
		return "2.2 to 3.2"
	case path == asEarlier && logs == asLater:
		return "3.3 or 3.4"
	case logs == asLater:
		return "3.3 to 3.5"
	case path == asEarlier:
		return "2.2 to 3.4"
	}
	return ""
}

// Generation returns which releases of XXL-JOB the executor speaks like, as far as its answers
// to this client have shown: "2.2 to 3.4" or "3.5" after a trigger, which also "2.2 to 3.2",
// "3.3 or 3.4" and "3.3 to 3.5" are told from by a log that was asked for; "xxljob" for an
// executor of this module that was asked about a run; "" while nothing is known. Executors that
// others wrote count as what they speak like.
func (c *ExecutorClient) Generation() string { return c.seen.words() }
