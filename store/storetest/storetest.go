// Package storetest holds what every store of package xxljob has to do: one
// case for each sentence of the contract in store.Store, and a wrapper that
// injects faults.
//
// A backend passes the suite from one test:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return memory.New() })
//	}
//
// The suite assumes nothing that the contract leaves open: ids need not be
// dense, the store's clock need not be this process's, and signals may be
// missing or late. Lists that the contract calls ordered are ordered as Go
// compares strings and numbers, whatever collation a database prefers.
//
// It is to pass under the race detector, and without it: races are run more often without.
package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Run runs the whole suite. It calls open once for each case, for a fresh and
// empty store that no other case sees; what has to be closed is closed by a
// t.Cleanup of open. Cases run in parallel.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, topic := range topics() {
		t.Run(topic.name, func(t *testing.T) {
			for _, c := range topic.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					t.Cleanup(func() {
						if t.Failed() { // for whoever runs again what fails: it may pass, and runs are lost all the same
							t.Log("audited: not run again")
						}
					})
					s := open(t)
					e := newEnv(t, s)
					c.run(e)
					recount(e, s)
				})
			}
		})
	}
}

// testCase is one rule of the contract. Its name says the rule.
type testCase struct {
	name string
	run  func(e *env)
}

// topic is the cases of one part of the contract.
type topic struct {
	name  string
	cases []testCase
}

func topics() []topic {
	return []topic{
		{"Common", commonCases()},
		{"Texts", textCases()},
		{"Job", jobCases()},
		{"Edit", editCases()},
		{"List", listCases()},
		{"Group", groupCases()},
		{"Run", runCases()},
		{"Stands", standsCases()},
		{"Ahead", aheadCases()},
		{"Scan", scanCases()},
		{"Claim", claimCases()},
		{"Start", startCases()},
		{"HandOver", handOverCases()},
		{"Unreported", unreportedCases()},
		{"Settle", settleCases()},
		{"Inbox", inboxCases()},
		{"Log", slices.Concat(logCases(), logPageCases())},
		{"Finish", finishCases()},
		{"Follow", followCases()},
		{"Owed", owedCases()},
		{"Alarms", alarmCases()},
		{"Trace", traceCases()},
		{"Known", knownCases()},
		{"Progress", progressCases()},
		{"Arm", armCases()},
		{"Bounded", boundedCases()},
		{"Node", nodeCases()},
		{"Shards", shardCases()},
		{"Clock", clockCases()},
		{"Registry", registryCases()},
		{"Read", slices.Concat(readCases(), readJobCases())},
		{"Reports", reportCases()},
		{"Record", recordCases()},
		{"Mutes", muteCases()},
		{"Troubles", troubleCases()},
		{"AppTokens", appTokenCases()},
		{"Accounts", accountCases()},
		{"Drop", dropCases()},
		{"Signals", signalCases()},
		{"Race", slices.Concat(raceCases(), followRaceCases(), owedRaceCases())},
		{"Faults", faultCases()},
	}
}

// tb is what the cases need of a *testing.T. The suite's own test passes one
// that records failures, to prove that each guard can fail.
type tb interface {
	Helper()
	Context() context.Context
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// numShards is more than one, so that a store that confuses shards is found.
const numShards = 4

// newEnv prepares a fresh store for a case.
func newEnv(t tb, s store.Store) *env {
	t.Helper()
	e := &env{tb: t, Store: s, ctx: t.Context(), now: time.Now().UTC().Truncate(time.Millisecond), joined: map[string]bool{}, patience: casePatience}
	e.must(s.SetShards(e.ctx, numShards))
	return e
}
