// Package interop_test runs executors that others wrote, as processes, against
// our side of the protocol, and the admin's HTTP clients that others wrote
// against our executor. `make interop` builds them (build.sh) and sets
// XXLJOB_INTEROP; without it nothing here runs.
//
//	java/, go/, python/   the peers: the same handlers and flags in each
//	ours_test.go          the same with the executor of this module
//	kind_test.go          what there is, and what of each is expected
//	process_test.go       a process that does not outlive the test
//	instance_test.go      a peer as a process, and its journal
//	front_test.go         an HTTP server that goes down and comes up again
//	stall_test.go         what a failure says of a machine that stood still
//
// Message by message, TestPeers:
//
//	admin_test.go         an admin that records what it is told
//	site_test.go          a peer at an admin, and what tests ask of the two
//	peer_test.go          the list of scenarios, the same for every peer, and the simple ones
//	block_test.go         runs beside each other and behind each other
//	end_test.go           runs that fail, take too long or are killed
//	log_test.go           lines of a run's log
//	repeat_test.go        one id sent twice
//	anew_test.go          ids that begin anew
//	outage_test.go        an admin that was away, a peer that was killed, a peer that leaves
//
// With the scheduler, TestScheduled:
//
//	host_test.go          a program with a scheduler in it
//	stage_test.go         two peers at a scheduler, and what tests ask of the three
//	scheduled_test.go     the list of scenarios, the same for every peer, and the simple ones
//	routes_test.go        runs that one peer or the other gets, or both
//	ends_test.go          runs that wait, fail, take too long or are killed
//	follow_test.go        lines of a run's log
//	order_test.go         runs that begin in order
//	gone_test.go          a scheduler that was away, peers that were killed, peers that leave
//	lost_test.go          runs of peers that were killed, in TestLost
//
// With a scheduler that has forgotten all it did, TestAnew:
//
//	anew_test.go          another scheduler knows nothing, and the result of an earlier one's run
//
// The other direction, TestJavaAdmins:
//
//	driver_test.go        a process with the HTTP client of a Java admin
//	javaadmin_test.go     that client and our executor
//
// Programs that manage their jobs, TestJavaJobs:
//
//	jobs_test.go          3.5's client for jobs, and our admin side
package interop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == oursFlag {
		ours(os.Args[2:])
		return
	}
	if os.Getenv("XXLJOB_INTEROP") == "" {
		fmt.Println("interop: NOT RUN: the peers of other languages run with make interop")
		return
	}
	if reason := missing(unpublished); mayMiss(reason) {
		fmt.Printf("interop: NO PEER %s: %s\n", unpublished, reason)
	}
	go stalls.watch() // ends with the process
	os.Exit(m.Run())
}

// cache is the directory in which the peers are.
func cache() string {
	if dir := os.Getenv("INTEROP_CACHE"); dir != "" {
		return dir
	}
	return filepath.Join("..", "bin", "interop")
}

// missing is why a peer is not there, or "".
func missing(name string) string {
	if b, err := os.ReadFile(filepath.Join(cache(), name+".missing")); err == nil {
		return strings.TrimSpace(string(b))
	}
	if _, err := os.Stat(filepath.Join(cache(), name)); err != nil {
		return "it is not built: " + err.Error()
	}
	return ""
}

// unpublished is the one peer that no registry has: see build.sh. Where the folder of
// its jars is not there, no test is about it, also where all peers are required.
const unpublished = "java-3.5.0-SNAPSHOT"

// mayMiss reports whether build.sh has found that a peer is missing as it may be.
func mayMiss(reason string) bool { return strings.HasPrefix(reason, "permitted: ") }

// artifact returns the directory of a built peer. A peer that could not be built
// skips the test, or fails it where it is required.
func artifact(t *testing.T, name string) string {
	t.Helper()
	if reason := missing(name); reason != "" {
		if required() {
			t.Fatalf("no peer %s: %s", name, reason)
		}
		t.Skipf("NO PEER %s: %s", name, reason)
	}
	dir, err := filepath.Abs(filepath.Join(cache(), name))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// required reports whether peers that are missing fail tests: where it is said, and
// where CI says that it is one.
func required() bool {
	return os.Getenv("XXLJOB_REQUIRE_INTEROP") == "1" || os.Getenv("CI") == "true"
}
