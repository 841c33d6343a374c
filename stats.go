package xxljob

// What a scheduler says of itself: Scheduler.Stats.

import "time"

// Stats is the state of one node at one moment. Counts of calls are since New.
type Stats struct {
	// Node is Config.Node, and Incarnation its name in the store, which each New makes anew.
	// At is the store's time as the node knows it.
	Node, Incarnation string
	At                time.Time

	// Held is how many planned runs are in memory, of which Due have come up and may be
	// started at once, and Waiting wait, by what they lack:
	//
	//	"place"     a free place at an executor of this process
	//	"address"   room for more triggers at an address, "app" of an app, "lane" in a lane
	//	"serial"    the end of the job's run at an address
	//	"run"       the end of another run, or its start
	//	"order"     an earlier run of the job, which is to be taken by another node
	//	"settle"    what a former owner of the shard has left of serial jobs
	//	"probe"     answers of executors that are asked whether they are idle
	//	"addresses" an answer of the registry, or one that succeeds
	//	"turn"      their turn among starts that go one by one
	Held, Due int
	Waiting   map[string]int
	// Fast and Slow are the lanes.
	Fast, Slow LaneStats
	// Running is how many runs are at executors of this process, by app; Calling is how many
	// triggers of other executors have no answer yet, and Away how many runs of this node's
	// shards are at other nodes.
	Running       map[string]int
	Calling, Away int

	// Shards is how many shards the node has. LeaseLeft is for how long it may still act on
	// that without another beat: negative where it may not, and at most LeaseTTL. It is that as
	// well where the node is alone, which needs no beats.
	Shards    int
	LeaseLeft time.Duration
	// ClockOffset is how far the store's clock is ahead of this process's, at least; zero
	// where the store has none of its own.
	ClockOffset time.Duration
	// EventsDropped is how many events hooks and subscribers were not told of.
	EventsDropped uint64
	// Logs is about lines of runs that go where Config.Logs says.
	Logs LogStats

	// Calls are those of the store, by the name of the method.
	Calls map[string]CallStats
}

// LaneStats is a lane: of Size places, Used are taken by triggers that have no answer yet.
type LaneStats struct{ Size, Used int }

// CallStats counts the calls of one method that have returned. Errors are all of them, also
// answers such as ErrNotFound.
type CallStats struct {
	Calls, Errors uint64
	// Total is how long all of them took, and Longest the longest.
	Total, Longest time.Duration
}

func (c *CallStats) count(took time.Duration, err error) {
	c.Calls++
	if err != nil {
		c.Errors++
	}
	c.Total += took
	c.Longest = max(c.Longest, took)
}
