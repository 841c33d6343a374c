// Package lease knows which shards this node has, under which epochs and for how long it may
// act on that, what it has seen of the other nodes, and whether this node itself fails. It does
// no I/O and starts no goroutine: the lease loop of room node brings it news.
//
// # Trust
//
// Jobs are spread over a fixed number of shards. A shard has an owner and an epoch, which each
// take-over raises; every write of the loops carries the epoch, so that a former owner writes
// nothing. A node beats every LeaseTTL/5. Each acknowledged beat is trusted for LeaseTTL less a
// fifth (Times.Window), counted on the monotonic clock from before the call. After that
// the node plans, starts and sends nothing (Leases.Trusted). One scheduler alone on a store in
// memory leaves its beats out (View.Alone): nobody is there to take anything, and the store
// signals when another node joins.
//
// Of two starts of a run the later one has the greater number, whoever owns the shard
// (NewToken): results and verdicts are fenced by it.
//
// # Shares
//
// Live nodes hold equal shares within one, in the order of their incarnations; a node with too
// many gives some back (Leases.Shares). A challenger takes a shard when it is free, or when its
// owner's counter has stood still for a LeaseTTL on the challenger's own clock while its own
// reads succeeded. A gap in these reads restarts the count. No wall clocks are compared: so a
// store that was away for ten TTLs makes no run of a live node lost.
//
// A node that has no use for shards is left out of the shares before it is silent: one whose
// presence lock is free, one that says that it is stopping, and one that fails while another
// does not (Observed.idle). A shard that is free for longer than two beats may be taken by any
// node, whatever its share, and is kept for a minute (idleShards). Otherwise nobody might take
// it in time: a node that has just joined does not know for how long the former owner has been
// silent, and may fall silent itself.
//
// LeaseMaxHold swaps shards. A shard that was given up for its age may be taken by another node
// even if that exceeds its share; that node gives up a shard of its own in turn. Otherwise
// nobody would take it, since all others have their share already.
//
// A node that cannot work out a job gives its shard to one that can (abilities.go), once a minute at
// most. The other one takes it at once, and keeps it beside its share for as long as a node is there
// that knows less: by the share alone it would go back and forth. Of a zone nobody knows who has it
// but who has looked for it. So each node says which zones it has met and lacks, and looks for those that
// others have met: one that lacks it too leaves the shard to the rest.
//
// # What makes a node give up a shard
//
// After each beat room node (rebalance, balance.go) asks Leases.Shares what to release. That is
//   - all of them, where the node rests since it fails (Fitness.Judge says that it does, Look that another
//     does better), or where a later node has its name;
//   - what is beyond its share, and what it has for longer than LeaseMaxHold (surplus);
//   - a shard with a job that it cannot work out and another node can (isToBeGiven, abilities.go);
//   - what a take brought in although Stop had begun. Stop itself releases the rest (heartbeat.resign).
//
// Without being asked a node loses what others have taken: it forgets a shard of which a view names
// another owner (own), or of which the store says that the epoch is another (Lose). Until it hears of that
// it does nothing there once its trust is over (Trusted).
//
// # What other nodes are
//
// Look takes in a View and judges each node (Observed):
//   - doubted: it is away, rests, or has missed two beats. Its address is not chosen while
//     there is another, and what waits for room there is routed anew.
//   - absent: it is away or was silent for LeaseTTL. What it has not taken goes back to
//     planned, and what it owned is adopted by the new owner of the shard. That is safe at any
//     time, because the store compares the row; so it need not wait for LostAfter.
//   - gone: it has left, was superseded by a newer incarnation, or was silent for LostAfter.
//     What it had taken ends as lost.
//   - drains: it stops, or rests, and takes nothing more. What waits in its inbox goes back to
//     planned too.
//
// A node whose name a later one has taken (mood.superseded) schedules nothing.
//
// # A shard that is new to this node
//
// Hold.Settled and Hold.Loaded say that this node has read what the former owner has handed to
// nodes that have not taken it, or may be sending to executors elsewhere, and has loaded what was
// planned. Before that it starts no run of a job of the shard whose runs have an order (IsOpen).
// Hold.LoadedTo is how far that is so already, so that the earliest runs need not wait for a long
// reading. A ReloadSet has the shards of which all planned runs are to be read.
//
// # A node that fails
//
// A node may beat while its claims or starts fail, for instance because its host has used up
// the pool of connections. It must not sit on its shards then (Fitness):
//   - When its claims or starts have failed throughout a LeaseTTL it says so in its row
//     (Node.Failing). As long as another live node neither fails nor stops, it rests: it gives
//     up its shards, is left out of the shares, is doubted, and what it has not taken is put
//     back.
//   - While it fails it tries a claim and a start that change nothing, every LeaseTTL/5. When
//     these, its beats and everything else have succeeded throughout a LeaseTTL, it takes part
//     again. The trials prove nothing if a real claim or start fails after they have succeeded,
//     as where no row can be written; they count again once the last such failure is far enough
//     in the past. A node that fails again soon has to succeed for twice as long each time,
//     five minutes at most (relapsed), so that its shards do not go back and forth.
//   - If all nodes fail, none rests, and one that does better while it has its shards keeps
//     them. A node rests only after its row has said that it fails for four times as long as
//     its beats take, a LeaseTTL at most (hasAnnounced), and not in favour of a node that has
//     missed two beats. In a store that is slow for everybody nodes begin to fail one after the
//     other; shards that moved meanwhile would have no owner when the store recovers.
//   - If its beats fail too, that is silence and is treated as such (silent).
//
// # Locks
//
// Leases.mu, Fitness.mu and ReloadSet.Mu are leaves and guard what their types hold.
// Leases.mu may be taken under the lock of room core's life.
package lease
