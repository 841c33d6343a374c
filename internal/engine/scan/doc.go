// Package scan finds what becomes due: it plans jobs, reads planned runs that this node does
// not hold, moves runs that were planned far ahead, and pays what successes owe.
//
// # Scan
//
// One loop a node scans, so no shard is scanned twice at once (Scanner). It asks the store for
// enabled jobs of the owned shards that are due within PreRead, and for planned runs without an
// epoch: inserted by hand, by what follows an end, or put back. It looks again when something
// enters the window, at a hint of the store, or at the store's poll; nothing ticks.
//
// The end of the window (planWindow) moves on in steps of about half the pre-read, so that a
// job that runs each second is claimed once for several instants. It lies between two whole
// seconds (betweenSeconds): those are the instants of crontabs, and their herds are not to be
// late by it.
//
// # Claim
//
// Room plan turns due jobs into plans, and claimer writes them: Store.Claim is fenced by epoch,
// compares version and next time, advances the job and inserts the runs in one transaction.
// What it returns goes to the ring; what it does not return is read again. So a due instant is
// never in memory alone, and never in the store twice. About a thousand runs go in a call.
// Between two calls the store is left to the starts for as long as the last one took, where
// what comes next is due in more than a quarter of the pre-read (rest).
//
// A claim whose outcome is unknown may land long after its answer was given up, and no scan
// returns what it has planned. So all planned runs of the shards concerned are read again for
// half a minute (unconfirmedClaim).
//
// Claims that the store refuses (ErrRefused) are halved. A job whose claim is refused alone is tried
// alone from then on, behind the others and once a second, and is stopped when it was so three times
// while others were taken; where even that is refused, it is a trouble. A scan of which nothing is
// taken is an error (judgeRefused).
//
// Of a job that waits for an executor of its app, which has none, nothing is claimed: it stays due from
// the instant on that nobody was there for, and the plan is as after an outage when somebody is
// (waitingJobs). Scans pass such jobs by, but for one every few seconds.
//
// Of a job in a zone that this node has no data of, or with a schedule of a newer release, nothing is claimed
// either, and it is not stopped (unable): another node may know better. It is a trouble of this node,
// and its shard goes to a node that can work it out, if there is one (room lease).
//
// A schedule that breaks after some of its runs were planned stops its job by the claim, which
// cancels nothing; room dispatch cancels those runs when they come up.
//
// # Reload and reconcile
//
// A Scan leaves runs of former epochs to Store.Planned: an index of the runs that no owner has
// seen stays small, and one of all planned runs by epoch does not. So after a take-over, after
// a scan that failed, and after an unknown claim, reloader reads all planned runs of the shards
// concerned, page by page (lease.ReloadSet, in room lease), as far ahead as any node plans
// (MaxPreRead). Of an app that is held up to a horizon it reads what comes behind that when the
// held ones run low (readOn).
//
// Once a minute reconciler compares what this node holds with the store. A run that is missing
// in two looks is taken up. There should be none: each is a bug of this module, and is logged
// as a warning.
//
// # A clock that was ahead
//
// What an edit, a start or the end of a run works out by a clock that is ahead is due too late once
// the clock is set right. RedateDuty goes through the schedules of this node's shards after a start
// and after a step back. A Next that lies behind the first instant after now, and after the latest
// that has a row (Job.Last), is set to that instant by a claim without runs. Runs that were
// triggered meanwhile, and retries, are corrected by the store (RunRedater).
//
// # Far ahead
//
// A run that was triggered for more than two days ahead is kept apart, since a planned run of
// today's partition would be dropped before its time and would widen the range of unended runs
// until then. AheadDuty moves it a day before it is due, by one transaction under its shard's
// epoch that deletes the entry and inserts the planned run.
//
// # What successes owe
//
// The transaction that ends the last part of a trigger inserts a row owed for each child, and
// for each job that runs behind this one. The owner of the shard pays (Payer): in one
// transaction the row goes, and the child is planned under a key made of the parent's trigger,
// so that it is there once even if the two were apart. Every child comes of an owed row, also
// one in its parent's shard: one path, whose crash points are tested once, at the price of a
// transaction more. A success that counts for a window of a join is added to that window's row,
// or opens it; whoever completes the set plans the run, under a key made of the window. Windows
// that are over are closed here (expire).
//
// # A node that fails
//
// While claims or starts fail, the scan loop tries a claim and a start that change nothing
// (tryOut): see room lease.
//
// # Goroutines and locks
//
// The scan loop, the ahead loop and the owed loop belong to stage plan, which Stop ends first.
// What claimer, reloader and reconciler have is the scan loop's own; there is no lock here.
package scan
