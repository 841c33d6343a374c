package login

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestFailuresUnderAClockSetBack: who waits for tries that have failed does not wait for as long as
// the clock was set back, and it is counted from there on as before.
func TestFailuresUnderAClockSetBack(t *testing.T) {
	var f failures
	at := netip.MustParsePrefix("192.0.2.1/32")
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) // as a clock on the wall has it, and no other
	let := func(n int) (list []time.Duration) {
		for range n {
			list = append(list, f.wait(at, now))
		}
		return list
	}
	let(freeFailures)
	if wait := f.wait(at, now); wait != time.Second {
		t.Fatalf("a wait of %v, want a second", wait)
	}
	now = now.Add(-24 * time.Hour)
	for i, wait := range let(freeFailures) {
		if wait != 0 {
			t.Errorf("try %d after the clock was set back waits for %v", i, wait)
		}
	}
	if wait := f.wait(at, now); wait != time.Second {
		t.Errorf("a wait of %v afterwards, want a second", wait)
	}
	f.takeBack(at, now)
	now = now.Add(-time.Minute)
	f.takeBack(at, now)
	if f.by[at].n > freeFailures {
		t.Errorf("%d failures after two successes", f.by[at].n)
	}
}

// TestAddressesOfLoginsAreBounded: however many addresses people log in from, so many are known, and
// none for longer than it may be.
func TestAddressesOfLoginsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failures
		at := func(i int) netip.Prefix {
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
		}
		for i := range mostAddresses + 100 {
			f.pass(at(i), time.Now())
			f.wait(at(i), time.Now())
		}
		last := at(mostAddresses + 99)
		if len(f.passed) != mostAddresses || len(f.by) > mostAddresses || !f.hasPassed(last) {
			t.Errorf("%d addresses of logins and %d of tries are kept", len(f.passed), len(f.by))
		}
		time.Sleep(passedKept)
		if f.hasPassed(last) {
			t.Error("an address is known for longer than it may be")
		}
	})
}
