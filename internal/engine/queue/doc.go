// Package queue is what a node holds in memory, under one lock: planned runs on the ring, due
// runs that wait for their turn or for room, and runs that are under way. It does no I/O: all
// of it can be read again from the store, so losing it loses nothing.
//
// A Queue is the whole of it. Its parts are jobs (jobBook), held (held), due (dueBook)
// and in flight (inFlight), which share Queue.mu, and waiters, which has a lock of its own.
// Methods wake the loops that have something to do by what they have changed: the start loop where
// something may start that could not before, and those that look after runs at other nodes where one
// has come to be there.
//
// # Held: up to a horizon
//
// A planned run goes on the ring when it is planned or read (Queue.Hold). A run that its
// schedule has just made is held in few words (compact.Planned), and gets what it goes through
// (routing) only from its time on; started runs share what runs at one address mostly have in
// common (compact.Started, compact.Shared).
//
// Of an app with more than MaxHeld planned runs in the window the node holds the earliest. The
// last quarter is forgotten, the horizon is where it began, and from there the store is read on
// when the held ones run low (shed, Thirsty, HoldNext). A quarter, because the next look would
// read a smaller part again at once. Work over a bound waits in the store, never in a queue
// without a bound.
//
// timering.Ring has sixty slots of a second, each a heap by millisecond; after a stall it returns
// everything that it missed, and it knows when the next run is due. Beside a ring of the user's
// (Config), which cannot be asked for that, dueTimes keeps the distinct due milliseconds and how much
// is due at each. The ring is called under Queue.mu. A ring of the user's that panics is not called again, since it may
// have left a lock of its own locked: the built-in one takes its place, filled from what is
// held.
//
// # Lead
//
// A run is taken off the ring before its time, by twice what the store's answers take, and by
// what their number takes where many are due at once (leadTime); with it goes what is due within
// 10 ms behind it, since a transaction costs far more than one run more in it. All of it is
// within MaxLead, 20 ms: a run is marked started at most so early, and sent at its instant.
// While a herd is being started (burst), results of this node wait if the store is in memory,
// because the next handler would be late by what they take of the processors.
//
// # Due: turns and waitlists
//
// Due entries are taken with the apps in turn (fairQueue), and in due order within an app. An entry
// without room is parked in the waitlist of what it lacks (WaitKey) and let out when that is given back: room
// in a lane, at an address or at an executor, an earlier run of its job, the answer to a probe,
// addresses, its turn (waitKind). Due runs, and those in waitlists, are heaps by instant and id
// (timering.Heap), so it does not matter when a run came or what it waited for.
//
// # Lanes, bulkheads, places
//
// A trigger of a user-made or remote executor holds a place in a lane until the executor has
// answered (lanes). There is a fast and a slow lane, by XXL-JOB's rule: slow is a job with more
// than ten triggers of over 500 ms in a minute (slowness). One app may hold half of a lane and
// one of its addresses a quarter, so that what hangs leaves room for others. What is over the
// bound waits instead of being dropped.
//
// Executors of our own make only enqueue, so a lane would bound nothing there. They have places
// instead: 2,000 for an app and address, or what a Places method says, or else AttachedPlaces.
// A place is held until the handler has returned; as many runs more may be on their way to the
// store, and that bounds a node. The further parts of a broadcast take no places in the lanes.
//
// # The order of serial jobs
//
// No run of a serial job is started while an earlier one is in transit (inTransit): about to be
// started; started at another node until that has taken it; put back and not started again; or
// waiting to be told where to go, or for its turn. The owner learns of a take by asking, every
// 50 ms, only while somebody waits for it.
//
// A run that waits for room at its address holds up no other: serial runs follow each other at
// one address, and a run of an hour must not hold up those of other addresses (JobPlaceAt). There
// is one exception. Once a broadcast has come, it and all later runs wait until an earlier run
// of the job at one of its addresses is started, which its own part would otherwise overtake
// (waitsForPart). The further runs of a serial job stay planned in the
// store, since a queue in memory dies with its process.
//
// Where a serial run would pass an earlier one's retry, the store turns its start down and
// names that retry. The run waits for it in a waitlist (retryBarrier), wherever the shard moves
// meanwhile.
//
// A new owner of a shard starts no serial run before it knows what the former one has left
// (OpenSerial; see room lease).
//
// # The order of what is sent
//
// At executors that are not ours, or elsewhere, the runs of each job but concurrent ones are sent
// one after the other: a run has its place at the address until its trigger was answered, or is in
// doubt (JobPlaceAt, AwaitsAnswer). Most get it before they are started. Parts of broadcasts, and runs
// that come from another node or address, are started by then, and wait for it (AwaitPlace).
//
// Of runs that cover earlier ones, that a schedule has made, and that are due at one address, the
// latest is started (covers.go).
//
// # Under way
//
// takeOff makes a started entry a flight of this process; a run at another node is a remoteRun,
// of which only the end is awaited. land frees what a run held and lets the next in. What has
// landed is remembered for a while (recentlyEnded), so that a stale reading puts no run up again.
// Those who wait for ends are in waiters.
//
// # Why it has so many names
//
// What room dispatch decides about a run is carried out here. A start has fifteen or so ways to come
// out, and each is a method that says what becomes of the places that the run holds, and when it is
// tried again: TryAgain, Rerouted, AwaitRun, AwaitRetry, ForgetEnded and the like. One method with a
// word for the case, or the lock in other hands, would be fewer names, and whoever reads a call would
// have to look inside for what it does. What router and dispatch hand each other about a run are
// fields of Entry, Routed and Destination. So what counts is that nothing has two names: what can be
// done for many is done so for one, and what the store says of a run that is not under way here comes
// in by Saw, whoever has asked.
//
// # Locks
//
// Queue.mu is held for moments, never while the store or an executor is called. The locks of
// users' routers come before it (room router); leadTime.mu and waiters.mu are leaves. The package
// starts no goroutine.
package queue
