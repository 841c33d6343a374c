// Package dispatch takes runs from due to ended: it starts them, sends them, takes what other
// nodes have addressed here, stores results, and finds out about runs of which nobody knows.
//
// New puts the parts together; Dispatcher has what other rooms call. The other rooms see nothing
// else but what a callback means (ResultOf, WithTimeout, SameDate).
//
// # The steps
//
// Each step of a run's way has a verb of its own, and the functions are called by it:
//
//	collect     takes due runs from room queue, routes them, and reserves their places
//	start       the store marks a run as started
//	take        the store marks a run of the inbox as taken, which another node has started here
//	launch      a started or taken run becomes a flight of this process, or is watched elsewhere
//	send        a flight whose time has come goes to its executor, if it may (maySend)
//	call        the executor is called
//	mark        the store marks a run that a remote executor has accepted as dispatched
//	readdress   the store gives a run that was refused another address, and it is sent there
//	ask         an executor elsewhere is asked about a run of which nobody knows
//	finish      the store takes a result
//
// What is done once more since it had no effect is tried again. A retry is always one by
// XXL-JOB's rule: a further run, of one that has failed.
//
// # Start
//
// starter is the start loop. It collects due entries, apps in turn: each is routed (room router)
// and takes its places. Then it has them written as started, with address, owner,
// token, handler and parameter: a thousand in one call of the store (startBatch).
// The caller gives the run as it has it (Start.Known), and is answered with what it does not
// know. The store compares: planned, epoch, the job's version, for runs of a schedule that the
// job is enabled, and that the nodes of attached addresses are there, so that a started run
// always has a node to take it or to be judged. Where that node has left since the run was routed
// (StartNoNode) the run stays planned: the next beat is asked for news of the nodes, and the run is routed
// anew after a pause (startTogether, which has a case for each answer). A stale version is read and tried
// again in the same pass (readAgain).
//
// Broadcasts and refusals take a transaction each, and follow in batches of about half a second
// (startSingly, batchSizer). Each is routed anew when its turn comes, if what was decided is old; one
// that has no effect comes again in a call of its own kind, so that a locked row holds up none
// that was not tried yet. A broadcast becomes part 0 of N, and the other parts are inserted
// started in the same transaction. At remote executors half a fast lane of them is called at
// once (fanOut).
//
// Runs whose job was stopped by a broken schedule after they were planned are cancelled when
// they come up.
//
// # A start or take in doubt
//
// A start that returned an error may have taken effect: the runs are read until the store has
// told (uncertain), and likewise after a take (takenAfterAll). Either may take effect even
// later. So unconfirmed remembers them, and for a while after such an error, and once a minute in
// any case, recovery looks for runs that the store has as under way here and that this node does
// not know (adoptOrphans). Those whose start or take had an error it runs. The others were run, and the store
// has forgotten their results, as a database does that fails over to a standby which was
// behind: they end as lost. A promoted standby is noticed by its start time (View.Server),
// since no scan returns runs of shards that keep their owner.
//
// # What the store refuses
//
// A batch that the store has answered with ErrRefused is halved (loop.Halve), down to members that
// are refused alone, so that none of them holds up another. One that is so three times while the
// store takes others (loop.Refusals) is refused for ever. A result then ends as its state, without
// its texts; where even that is refused, lockedLoop tries it again (finishApart). A start is made singly
// from its first refusal on, and is then recorded as refused (startrefused.go). What a node may not
// take stays in its inbox; what it may not mark goes on without that; a verdict is tried again with
// the next look. Each of these is a trouble for as long as it lasts. Where the first few
// (RefusedFew) are all refused the store may refuse everything: that is an error as any other.
//
// # Send
//
// A run is sent at its time, if its start was acknowledged within the trust window; otherwise
// the row is read first (maySend). What was started early waits in delayQueue. An executor
// of ours in this process only enqueues, and is called directly, for many runs at once
// (callTogether). One of the user's, and one elsewhere, is called from a goroutine that holds a
// place in a lane. Tracers are told first, and the trace that they answer goes along.
//
// A call of a remote executor has three outcomes:
//   - accepted: dispatchMarker stores the run as dispatched, in batches that gather for 20 ms, and it
//     needs nothing more of this node. One whose result this node has stored by then needs no
//     such mark;
//   - refused, or certainly not sent (wire.NotSent, wire.TurnedAway): the run is readdressed along
//     a probing route, by a compare-and-set on its address, or ends;
//   - in doubt: no answer, or one that does not say whether the executor has the run. A status of
//     502, 503 or 504 is one: a proxy may have handed the trigger on. The run stays started. Unknown
//     is neither a failure nor a success.
//
// The first trigger carries the boot id of the registered process where one is known. A process
// that has replaced it refuses such a trigger without doing anything, and is then sent it again
// with its own boot id or none (callSuccessor). So a copy that a proxy resends to a later
// process is not run.
//
// # In doubt
//
// inDoubt asks, a few addresses at a time, each by its own goroutine. What is concluded about
// one run comes from that run and not from its job: a busy job may be busy with another run,
// and then this one would never end. Run.BootID says which process can answer for certain.
//   - An executor that has shown CapRepeat and a boot id is sent the same request again, as
//     long as that very process is registered, by a node that is trusted and has just read the
//     run. The request says how long ago it was first sent, so that an executor which may have
//     forgotten the id can say so.
//   - Any other executor of ours is asked about the run. It has it: dispatched. It has reported
//     it: the row is read again, and a run that is not over there is lost, because the store
//     has forgotten its result. It was not sent it: planned again; only the process that the
//     run was started for can say so, and it refuses that start from then on. It may have
//     forgotten it: lost after Dead.
//   - An executor of others says whether the job is idle. If it is, and no result comes within
//     Dead, the run is lost; if it is busy it is asked again until Overdue.
//
// A question that is answered with 503 has no answer: for fifteen seconds it is asked again, since a
// balancer gives that status while executors come and go (justUnavailable). From then on it counts as
// any error: the run is lost when its address is none of its app's any more, after Dead, or
// when nothing was heard for ten minutes (lost).
//
// Where a later run of the job was sent to the address, the one in doubt is not sent again
// (overtake).
//
// When a node dies, or a shard moves, the next owner takes over its unsent and in-doubt remote
// runs and asks about them. What an owner concludes is stored by owner and token, so that it
// cannot end a later start (concluded).
//
// # Unreported
//
// A run that a remote executor has accepted, and that nobody reports, is looked after by
// whoever owns its shard (unreported). Each LostAfter/3, ten seconds at most, while there are
// any, the node reads them and who is registered at their addresses (liveness, in room
// registry), and asks those about them that may not have them any more. A run ends as lost
//   - when its executor was silent for Dead, and nobody answers there, or another process does;
//   - when the process that had it says that it never had it;
//   - when another process was registered at the address for LostAfter, which first delivers
//     what it finds on the spool;
//   - when it is not there any more, by what an executor of others says of its job at two times
//     in a row, and no result came within Dead;
//   - at an address that stands for several processes, when twenty answers in a row over twice
//     Dead were so, or all processes there have denied it (shared.go);
//   - Overdue plus the job's timeout after its start, where no executor claims to have it.
//
// Such an address shows in that processes which can be told apart take turns, or that a job is
// idle and then busy though nothing was sent there. A run goes by the process which has said that
// it has accepted it (Dispatch.BootID), whichever is registered. Questions to an executor that has
// denied a run, kills that another process has agreed to, and questions for a log that is not there
// go on connections of their own, so that they do not come to the same process for ever.
//
// What an executor of ours says that it has is never ended: when it is overdue the log says so,
// once in Overdue. An address given by hand need not register: it has to answer once in Dead.
// Of more than 50,000 such runs the oldest of each address are looked after, in fair shares;
// runs whose shard has moved are kept in mind for a while, so that a shard which moves each minute
// is watched by somebody for long enough. A node believes what it has seen without a gap: after a
// start, a pause, or a store that was away, all of these times begin anew. A result that comes
// first wins.
//
// # What is not known
//
// Each doubt has a name, and one who ends it:
//
//	name          what is not known                               who asks whom                   until when
//	uncertain     whether a Start that had an error took effect   the start loop reads the runs   the store has told
//	unconfirmed   whether a Start or a take that had an error     recovery, once a minute and     unconfirmedKept after
//	              takes effect even later                         after an error, reads what is   the last error
//	                                                              under way here (orphans)
//	inDoubt       whether an executor elsewhere has a run: its    inDoubt asks the executor, or   a reply, a result, or
//	              trigger had no answer                           sends the same again            evidence that it is lost
//	unreported    whether an executor elsewhere still has a run   the owner of its shard asks     a result, or evidence
//	              that it has accepted                            the executor                    that it is lost
//	unstored      whether results are stored: Finish had an       whoever stores them tries       the store has told; Ready
//	              error, or refused them                          again                           names the oldest
//
// Two more are no doubts about one run: verdictRefused (recover.go) has a verdict about a gone node's
// runs given again with the next beat, and room scan's unconfirmedClaim has planned runs read for
// half a minute after a Claim without an answer.
//
// # Hand-over
//
// A run addressed to another node waits in that node's inbox, which is the row itself: no node
// needs a port or a broker. The node takes what it has places for, by a committed
// compare-and-set, and then calls the handler (inbox). Kills travel the same
// way (killer), and so do questions for lines of logs (room runlog).
//
// # Results
//
// finisher stores results in batches and answers after that. What ends gives back its
// places, wakes those who wait, and re-arms its job if that waited. An executor of this process
// that brings several results hears of it 5 ms later, unless runs wait for room, so that more
// of them go into the next transaction (letGather). Results of runs that others have locked
// have a loop of their own (lockedLoop), so that one locked row holds up nothing else; an executor of this
// process is answered before they are stored (finish.go says why that is no promise broken).
//
// What handlers say of their progress goes to the rows batched, once a second at most
// (progress). What was said last is part of the result, so nothing waits for any of it.
//
// # Runs of other nodes
//
// recovery judges what doubted nodes have left (room lease says which those are): what an absent
// node has not taken is planned again, what it owned is adopted, and what a gone node had taken
// ends as lost. Of a shard that comes from a live node it has later runs wait for what that node may be
// sending (awaitAnswer), and adopts what was not answered in time (adoptUnanswered). watcher learns of the ends
// of runs at other nodes, and whether runs that others wait for were taken or answered (transitLoop).
//
// # Wait
//
// A handler that waits for its own run gets ErrWaitsForItself (waitsForItself). So does one that
// waits for a planned run of the same serial job that is certain to come to the handler's
// address: the trigger names that address alone, nobody else has the handler, or the strategy
// goes by the addresses only (FIRST, LAST, FAILOVER, CONSISTENT_HASH, a broadcast over nodes).
// With NEAREST the wait is refused if the handler's node owns the job's shard. The shard might
// still move, but that is rarer than a handler that would hang for ever. Where another route
// may send the run elsewhere, the handler waits.
//
// # Goroutines and locks
//
// Stage plan: the start loop and the send loop. Stage work: the loops of results, of locked
// results, dispatch, in doubt, unreported, inbox, progress, watch and transit. Sends, questions
// (64 at once for each of the two loops that ask) and kills of executors that may hang have
// goroutines of stage work; 64 idle ones wait for the next send (loop.Pool). The locks
// unconfirmed.mu, askedRuns.mu, delayQueue.mu and progress.mu are leaves.
package dispatch
