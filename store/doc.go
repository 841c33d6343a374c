// Package store has the words that the scheduler and its stores say to each other and that
// nobody else needs: what the methods of Store take and return, apart from jobs, runs
// and nodes. It is for authors of stores. Programs that use a store import store/memory or
// store/postgres, and authors check theirs with store/storetest.
//
// The types are plain values, copied in and out. None does I/O or starts a goroutine.
package store
