package xxljob

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

// Store keeps everything that outlives a moment: jobs, runs, groups, nodes, shards and the
// registry. Packages store/memory and store/postgres have one each. Programs read from it: Job,
// JobByKey, Jobs, Changes, Group, Groups, Run, Runs, Registrations; everything else is for
// authors of stores, for whom [store.Store] has the contract.
type Store = store.Store

// JobFilter, for Store.Jobs, chooses jobs: by App, Key, Handler, Name and more, After an id, so
// many as Limit says. Zero fields choose all. See [store.JobFilter].
type JobFilter = store.JobFilter

// RunFilter, for Store.Runs, chooses runs: by App, JobID, States and times, Before an id, so
// many as Limit says. Zero fields choose all. See [store.RunFilter].
type RunFilter = store.RunFilter

// RegistrationFilter, for Store.Registrations, chooses registrations. Zero fields choose all.
// See [store.RegistrationFilter].
type RegistrationFilter = store.RegistrationFilter

// Registration is one address of an executor app, as its executor has registered it. See
// [store.Registration].
type Registration = store.Registration

// Node is one started Scheduler among those that share a store. See [store.Node].
type Node = store.Node

// View is the cluster at one moment, as [ClusterReader] tells it: nodes, shards and who has
// them. See [store.View].
type View = store.View

// Edit is a change of one job, as Store.EditJob takes it: programs call the verbs of a Scheduler
// instead. See [store.Edit].
type Edit = store.Edit

// Change is an entry of the record of changes: the Actor, the Verb, the
// Object, and what that was Before and After. See [store.Change].
type Change = store.Change

// ChangeSearch, for ChangeRecord.SearchChanges, chooses entries of the record of changes. Zero
// fields choose all. See [store.ChangeSearch].
type ChangeSearch = store.ChangeSearch

// ChangesFound is what a search in the record of changes has found. See [store.ChangesFound].
type ChangesFound = store.ChangesFound

// ChangeRecord is what a Store is as well that answers questions about the record of changes.
// Both stores of this module are. See [store.ChangeRecord].
type ChangeRecord = store.ChangeRecord

// AccountStore is what a Store is as well that keeps the users of a console, their sessions and
// their tokens. Both stores of this module are. See [store.AccountStore].
type AccountStore = store.AccountStore

// LogStore is what a Store is as well that keeps lines of runs' logs, see LogConfig.InStore.
// Both stores of this module are. See [store.LogStore].
type LogStore = store.LogStore

// JobReader is what a Store is as well that lists jobs in several orders and counts them. Both
// stores of this module are. See [store.JobReader].
type JobReader = store.JobReader

// JobSearch, for JobReader.SearchJobs, chooses jobs. Zero fields choose all. See
// [store.JobSearch].
type JobSearch = store.JobSearch

// RunReader is what a Store is as well that answers questions about many runs at a cost that
// does not grow with how many there are. Both stores of this module are. See [store.RunReader].
type RunReader = store.RunReader

// RunSearch, for RunReader.SearchRuns, chooses runs. Zero fields choose all. See
// [store.RunSearch].
type RunSearch = store.RunSearch

// RunsFound is what a search for runs has found. See [store.RunsFound].
type RunsFound = store.RunsFound

// ReportReader is what a Store is as well that counts how runs end. Both stores of this module
// are. See [store.ReportReader].
type ReportReader = store.ReportReader

// ReportQuery, for ReportReader.Reports, chooses reports. Zero fields choose all. See
// [store.ReportQuery].
type ReportQuery = store.ReportQuery

// ReportsFound is what a query for reports has found. See [store.ReportsFound].
type ReportsFound = store.ReportsFound

// ClusterReader is what a Store is as well that can be asked for the cluster by somebody who is
// no part of it. See [store.ClusterReader].
type ClusterReader = store.ClusterReader

// RunDropper is what a Store is as well that deletes ended runs when it is told to. Both stores
// of this module are; programs call Scheduler.DropRuns. See [store.RunDropper].
type RunDropper = store.RunDropper

// RunDrop, for Scheduler.DropRuns, chooses ended runs that are to be deleted. One of Before,
// KeepNewest and All has to be given; lists that are empty choose all. See [store.RunDrop].
type RunDrop = store.RunDrop

// WithActor returns a context whose changes are recorded under the name: that of a user, or of
// the program that makes them. It is kept to store.MostActor bytes, and what cannot be shown of
// it is replaced. Changes of jobs and apps are recorded without a name too; runs that are
// triggered or killed only with one, since programs may trigger thousands. It panics
// where ctx is nil, as context.WithValue does: there is no error to return. Stores read the
// name with store.Actor.
func WithActor(ctx context.Context, name string) context.Context { return store.WithActor(ctx, name) }

// WithClient returns a context whose changes are recorded with the address of the client that
// has asked for them, and what its request is known by; either may be empty. They are kept to
// store.MostClient and store.MostRequestID bytes as names are. It panics where ctx is nil.
func WithClient(ctx context.Context, address, requestID string) context.Context {
	return store.WithClient(ctx, address, requestID)
}

// ValidateUser returns what is wrong with a user: a FieldError each, joined. See
// [store.ValidateUser].
func ValidateUser(u *store.User) error { return store.ValidateUser(u) }
