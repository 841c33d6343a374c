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
//	gone_test.go          a scheduler that was away, peers that were killed, peers that leave
//
// The other direction, TestJavaAdmins:
//
//	driver_test.go        a process with the HTTP client of a Java admin
//	javaadmin_test.go     that client and our executor
package interop_test

import (
	"fmt"
	"os"
	"path/filepath"
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
	os.Exit(m.Run())
}

// artifact returns the directory of a built peer. A peer that could not be built
// skips the test, or fails it where it is required.
func artifact(t *testing.T, name string) string {
	t.Helper()
	cache := os.Getenv("INTEROP_CACHE")
	if cache == "" {
		cache = filepath.Join("..", "bin", "interop")
	}
	cache, err := filepath.Abs(cache)
	if err != nil {
		t.Fatal(err)
	}
	reason := ""
	if b, err := os.ReadFile(filepath.Join(cache, name+".missing")); err == nil {
		reason = string(b)
	} else if _, err := os.Stat(filepath.Join(cache, name)); err != nil {
		reason = "it is not built: " + err.Error()
	}
	if reason != "" {
		if required() {
			t.Fatalf("no peer %s: %s", name, reason)
		}
		t.Skipf("NO PEER %s: %s", name, reason)
	}
	return filepath.Join(cache, name)
}

// required reports whether peers that are missing fail tests: where it is said, and
// where CI says that it is one.
func required() bool {
	return os.Getenv("XXLJOB_REQUIRE_INTEROP") == "1" || os.Getenv("CI") == "true"
}
