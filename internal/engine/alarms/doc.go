// Package alarms decides which alarm goes to whom and when, and calls the alarmers.
//
// Which alarm the end of a run is, is decided in the transaction that ends the run, and its row
// is inserted there (Run.Alarm, package store), if a rule of any node wants it: the store keeps what rules are
// about (Keep). So no crash loses an alarm, and no service has to know the rules of others. Of the
// nodes that have a rule one tells of it: its teller reads the new rows, alarmBook decides, sender
// calls, and what was told is marked in the store. An alarm row has the name of its job, so that a removal or an edit
// between cause and message changes nothing.
//
// # Reading
//
// Ids are given before they are committed, so what may have been inserted behind the alarms
// that were read is asked for again for alarmOverlap, and everything that is not done with once
// in alarmWhole: a process that is paused, or a commit that waits for a standby, may take
// longer than the overlap.
//
// # Who holds a rule
//
// A teller asks for its rule when there is something to tell (HoldRule), for a LeaseTTL by the
// store's clock, relies on that for half of it, and asks again as long as something waits. Who is
// refused asks again when that time is over, until it has looked itself: so the end of a node costs
// a LeaseTTL. What was known is forgotten when another node has held the rule meanwhile. Where
// nothing is to be told, nobody asks. Alarms that nobody told of for a day are given up by the owner
// of the first shard (UntoldDuty), which needs no rules for that.
//
// # Whose turn it is
//
// alarmBook is pure and belongs to the alarm loop. Whatever it does for one job costs the same
// however many others there are. Jobs and rules that have something to tell have turns, first
// come first served (alarmTurns), so that storms of some jobs keep no other from being told of.
// Full texts are kept of the latest alarms only (alarmTexts); the rest is read again for its
// message. Recoveries are asked for every recoverEvery.
//
// # Calls
//
// One call of an alarmer carries one message and has Rule.Timeout; eight of a rule may be under
// way at once (alarmFlights). A call that ignores its context is left behind, and keeps its
// place among those of its rule, so that an alarmer which hangs does not gather goroutines.
//
// # Troubles
//
// A trouble (core.Troubles) is no row in the store, which may be what is in trouble: the node that
// has it tells of it, from memory (troubleBook). It is told once it has lasted a minute, and its end
// once that has lasted a minute, those of one cause and app together. A message that fails is tried
// again for as long as the trouble lasts, and that it is over for a day.
//
// Rules that other nodes have are told by them: for these the node notes the trouble in the store as an
// alarm (troublenotes.go), by a rule of its own that all troubles come under, so that a note is made when a
// message would be. The store lets the first node begin it and the last one end it. Who reads such an
// alarm and has the trouble itself tells it from memory, once, and holds the rule until its end was
// noted, too. Of an alarm book, what is noted of one cause and app is a job with a negative id (bookID).
//
// # Late runs
//
// LateDuty looks for runs that have not ended Job.LateAfter behind their instants: in the shards of
// this node, and in all where it holds a rule, since their owners may have none. No run waits
// for that, and yet it may use the store's reserve: a run that ends before it is seen is never
// told of.
//
// # Stop
//
// Stop has nothing more sent (hush), and waits for a tenth of a second (alarmRest) for what is
// on its way before the shards are released: their next owner would tell the same again. What
// ends behind that is marked at the very end (LastMarks).
//
// # Goroutines and locks
//
// The alarm loop and the late loop run where there are rules, in stage work; each call has a
// goroutine of that stage. alarmFlights.mu is a leaf.
package alarms
