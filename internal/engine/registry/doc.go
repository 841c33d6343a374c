// Package registry knows which executors are there: the addresses of apps, the processes behind
// them, the registrations that come over HTTP, and the executors of this process.
//
// # Addresses
//
// Addresses answers which addresses may run a handler of an app. An answer is kept for a
// second (Memory). That there is no address is not remembered, since it ends a run as
// refused. Where the store or a registry of the user's does not answer within a second, the
// last answer serves, for Dead at most: a locked table of addresses keeps no run from an
// executor that is there. For the same reason an executor of this node that the user's Registry
// has not heard of is registered before its app is said to have no address.
//
// A trigger that names addresses chooses among those of its app (ChooseGiven). XXL-JOB takes
// any address, and sends it the token. A token goes to the addresses of its own app and nowhere
// else (remote).
//
// Loopback may be connected to, since executors beside their scheduler are usual. Link-local
// addresses and the clouds' metadata addresses may not (wire.TransportConfig.AllowIP). A
// registration is authenticated by its app's token, and whoever has that may name any other
// address.
//
// An executor that has said good-bye can still be asked and told about its runs for Dead, at
// nodes that knew it or that have just come to look after a run there, and for as long as it
// answers (tombstones): it lets its handlers end. It is sent nothing new.
//
// One address may be registered in several spellings. Addresses are compared by their normal
// form, and kept, hashed and sent as they were given (spellings.go has the rule and where it is
// applied). Of addresses that differ in spelling alone one is used, and a good-bye of an unknown
// one is looked for in the other spellings.
//
// # Registrations
//
// registrar stores registrations in batches, through an intake of package fairqueue. A heartbeat
// of a known executor is answered before it is stored, with the next batch, 70 ms later at
// most. A registration that is new to this node, or the first one after an error, is answered
// after. Should a batch be lost, another beat comes before the executor counts as dead. What
// other nodes have stored is read every Beat while there are registrations, so that this holds
// behind a balancer too.
//
// The number of registrations is bounded; they do not queue (quota). Each node counts what it
// reads every Beat and what it has stored since. A live executor keeps its place. When there is
// no room, dead ones are deleted after twice Dead (ForgetLoop). The table stays below twice the
// bound, which several nodes together may exceed by what each accepts within a Beat.
//
// A Registry of the user's gets each registration by itself, for it may fail for one and not
// for the next.
//
// # Presence
//
// liveness has what was heard of the addresses of runs that executors have accepted: for how
// long an address has been silent, and for how long the process that had a run has been
// replaced by another. Room dispatch judges unreported runs by it. A node that has not looked
// for a while begins anew: what it did not see says nothing. Where a boot id comes back behind
// another one (a balancer; the registration says which process was there before, for nodes that
// do not hear the beats), a process counts as replaced once it was itself silent for three
// times Dead. An address where that was seen is remembered as one of several processes for an
// hour, 1,000 of them at most (shared.go).
//
// # Apps that nobody serves
//
// Serving has them, as an app with nobody is found when one of its jobs or runs is due, or when the
// last node that had it attached goes. The store keeps how each app was served last, and since when
// not, so that any owner decides alike (Store.NoteServed). Jobs that wait are left unclaimed by room
// scan, and runs that wait are parked by room router, without the store or a registry being asked
// about each. Duty notices who comes: a node at the look that shows it, a registration here at once,
// one elsewhere by the store's word of it, and what neither tells of within a Beat.
//
// # Executors of this process
//
// AttachedSet has them, one for an app. They live with their node's lease: the beats say who is
// attached. publisher keeps them in a Registry of the user's besides. An executor of our own
// make is called directly, because it recovers from what its handlers do; one of the user's is
// guarded (userExecutor): a panic means that the run was not accepted.
//
// An app without an executor is a warning where a job is defined, and an error with
// StrictHandlers, since an error by default would break rolling deploys. Room catalog refuses a
// handler that is misspelt in an app of this process.
//
// # Executors elsewhere
//
// remotes has a client for each address. Which generation of the protocol a peer speaks is
// known by its answers, call by call, and not by a setting, which would be wrong on the day of
// an update (Remotes.Generation). Of the two tokens that are valid during a change of tokens it uses
// the one that was accepted last.
//
// # Calls of registries and routers of the user's
//
// UserCalls has one call under way about one matter: an app and method, a job and router, an
// address of a registration, 1,000 of these in all. Its callers wait until RouteTimeout is
// over (guard.Future). A call that does not return is left behind, and holds up what it is about and nothing
// else; Stop waits for what is left of its time (wait).
//
// # Locks and goroutines
//
// registrations.mu comes before Memory.mu. The others (AttachedSet, Memory,
// liveness, remotes, spellings, UserCalls) are leaves. The loops are started by room node: the
// registrar's, the one that forgets dead registrations, and the one that publishes. Looks
// through the registry, and calls of the user's code, have goroutines of their own, which Stop
// waits for within their time.
package registry
