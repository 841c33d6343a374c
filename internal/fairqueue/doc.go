// Package fairqueue collects what executors elsewhere send, on its way into the store, so that
// each app has its turn and its own room.
//
// A Queue takes in what a request has brought (Add) and hands out batches, one at a time
// (Loop). Two things go through one: results (room admin) and registrations (room registry).
//
// # Turns and room
//
// What waits is grouped by token first and then by app (Origin), because whoever
// has a token that all share may name any app. Apps take turns, a bounded number of items in
// each (Bounds.AtOnce), so that a page of a thousand results of one app holds up no other
// app for long.
//
// What waits is bounded in bytes, for an app and in all (Bounds.OfApp, Bounds.InAll). Over the bound a
// request is refused, and its sender sends again. When room runs out, what nobody waits for any
// more goes first; when everything is full, whoever has most makes room for those who have
// less. An app of which nothing is here takes in one request, however large.
//
// # Errors
//
// A batch that fails is repeated app by app, and what fails of that request by request, for
// half a second at most, and beginning with another one each time.
// So nobody pays for what is wrong with others. A request is given up once it has failed by
// itself although another one has not. Where Bounds.Retries is set, what fails as a whole stays and is
// tried again, because some executors never send a result twice.
//
// A caller waits for its Request for a while. What it has left behind is still stored after it
// was told to try again, for as long as that is worth something (Bounds.Kept): ten
// minutes for results, a third of Dead for registrations.
//
// # Locks and goroutines
//
// The lock of a Queue is a leaf and is never held across a call of the store. The package starts no
// goroutine: Loop is run by the rooms that have a Queue, and goes on until its context ends;
// then it stores what has come by then, up to the first error.
package fairqueue
