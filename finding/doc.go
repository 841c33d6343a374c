// Package finding says what is wrong, and why: which causes keep the jobs of a cluster from doing
// their work ([Attention]), and why a job or a run is where it is ([WhyJob], [WhyRun]).
//
// The deciders are pure: they are given a [World], which is what a store tells of one moment, and
// return findings, each with its evidence, so that whoever is told can look for himself, and with a
// remedy which, when it is followed, makes the finding go away. [Read] reads a World from a store at
// a bounded cost, however much the store has.
//
//	world, err := finding.Read(ctx, st)
//	for _, f := range finding.Attention(world) {
//		fmt.Println(f, "–", f.Remedy())
//	}
//
// One finding is one cause, not one job: an app without executors is one, however many jobs it has,
// and so are jobs of an app that fail with the same error. What is meant to be is no fault: one-shots
// that have run, jobs that somebody has stopped, runs that were covered, killed or discarded, and a
// failed attempt of which another one follows. [Together] makes one line of what is of several apps and
// mostly has one reason.
package finding
