package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

func registryCases() []testCase {
	return []testCase{
		{"AddressesAreSorted", addressesSorted},
		{"PutKeepsWhatWasSaidLast", putLast},
		{"PutRefreshes", putRefreshes},
		{"PutKeepsTheFormerProcess", putFormer},
		{"OfTwoInOneBatchTheLastCounts", putTwice},
		{"ConcurrentBatchesInAnyOrder", putConcurrent},
		{"DropRemoves", dropRemoves},
		{"DropComparesTheBootID", dropBootID},
		{"OldAddressesAreLeftOut", addressesExpire},
		{"RegistrationsAreThoseOfAllApps", registrationsAll},
		{"RegistrationsPagesCoverAllOnce", registrationsPages},
		{"RegistrationsOfAnApp", registrationsOfApp},
		{"RegistrationsLimitDefaultsTo100", registrationsDefaultLimit},
		{"RegistrationsWithinATime", registrationsWithin},
		{"ForgetLeavesFreshOnes", forgetsOld},
		{"ServedIsWhatWasNotedLast", servedLast},
		{"ServedKeepsTheFirstGone", servedGone},
	}
}

// registered is what an executor registers.
func registered(app, address string, capabilities ...string) store.Registration {
	return store.Registration{App: app, Address: address, BootID: "boot", Capabilities: capabilities}
}

// put tries again what others had locked, as an executor's next beat does.
func (e *env) put(regs ...store.Registration) {
	e.Helper()
	err := e.PutAddresses(e.ctx, regs)
	for errors.Is(err, store.ErrLocked) {
		err = e.PutAddresses(e.ctx, regs)
	}
	e.must(err)
}

func (e *env) drop(regs ...store.Registration) {
	e.Helper()
	err := e.DropAddresses(e.ctx, regs)
	for errors.Is(err, store.ErrLocked) {
		err = e.DropAddresses(e.ctx, regs)
	}
	e.must(err)
}

func (e *env) mustAddresses(app string, maxAge time.Duration) []store.Registration {
	e.Helper()
	regs, err := e.Addresses(e.ctx, app, maxAge)
	e.must(err)
	return regs
}

func (e *env) mustRegistrations(f store.RegistrationFilter) []store.Registration {
	e.Helper()
	regs, err := e.Registrations(e.ctx, f)
	e.must(err)
	return regs
}

// names are apps and addresses in their order.
func names(regs []store.Registration) []string {
	var list []string
	for _, r := range regs {
		list = append(list, r.App+" "+r.Address)
	}
	return list
}

func addressesSorted(e *env) {
	e.put(registered("app", "http://b:1"), registered("app", "http://a:10"), registered("other", "http://c"))
	e.put(registered("app", "http://B:1"), registered("app", "http://a:9"), registered("app2", "http://a:1"))
	want(e, "addresses", names(e.mustAddresses("app", time.Hour)), []string{"app http://B:1", "app http://a:10", "app http://a:9", "app http://b:1"})
	want(e, "addresses of an unknown app", len(e.mustAddresses("none", time.Hour)), 0)
	want(e, "addresses of an app in other letters", len(e.mustAddresses("APP", time.Hour)), 0)
}

func putLast(e *env) {
	address := "http://a/base?x=ü"
	for i, said := range []store.Registration{
		{App: "app", Address: address, BootID: "one", Capabilities: []string{"repeat", `odd"{},\`, "", "NULL", "b c"}},
		{App: "app", Address: address, BootID: "two", Capabilities: []string{"z", "a"}},
		{App: "app", Address: address},
	} {
		given := said
		given.Updated = e.at(-86400) // the store's own clock decides
		e.put(given)
		got := e.mustAddresses("app", time.Hour)
		if len(got) != 1 {
			e.Fatalf("after %d calls there are %+v, want one", i+1, got)
		}
		said.Updated, said.FormerBootID, said.FormerSeen = got[0].Updated, got[0].FormerBootID, got[0].FormerSeen
		want(e, "registration", got[0], said)
		want(e, "number of capabilities", len(got[0].Capabilities), len(said.Capabilities))
		want(e, "registration in the list of all", e.mustRegistrations(store.RegistrationFilter{}), got)
	}
}

// putFormer: of processes that take turns at an address, those two are known that were there
// last, and when.
func putFormer(e *env) {
	reg := registered("app", "http://a")
	var was store.Registration
	for i, boot := range []string{"one", "one", "two", "two", "one", "", "three"} {
		reg.BootID = boot
		reg.FormerBootID, reg.FormerSeen = "nobody", e.at(0) // the store sets these
		e.put(reg)
		got := e.mustAddresses("app", time.Hour)[0]
		former, seen := was.FormerBootID, was.FormerSeen
		if i > 0 && boot != was.BootID {
			former, seen = was.BootID, was.Updated
		}
		want(e, fmt.Sprintf("former process, and when it was seen, after %d calls", i+1), []any{got.FormerBootID, got.FormerSeen}, []any{former, seen})
		was = got
	}
	want(e, "former process in the list of all", e.mustRegistrations(store.RegistrationFilter{})[0].FormerBootID, "")
}

func putRefreshes(e *env) {
	e.put(registered("app", "http://a"))
	first := e.mustAddresses("app", time.Hour)[0].Updated
	if first.IsZero() {
		e.Fatalf("Updated is not set")
	}
	e.eventually("a later call raises Updated", func() bool {
		e.put(registered("app", "http://a"))
		got := e.mustAddresses("app", time.Hour)
		want(e, "addresses", names(got), []string{"app http://a"})
		return got[0].Updated.After(first)
	})
}

func putTwice(e *env) {
	one, two, last := registered("app", "http://a", "one"), registered("app", "http://a", "two"), registered("app", "http://a", "last")
	last.BootID = "last"
	for range 2 {
		e.put(one, registered("app", "http://b"), two, registered("other", "http://a"), last)
		got := e.mustAddresses("app", time.Hour)
		want(e, "addresses", names(got), []string{"app http://a", "app http://b"})
		last.Updated = got[0].Updated
		want(e, "registration", got[0], last)
		want(e, "addresses of the other app", names(e.mustAddresses("other", time.Hour)), []string{"other http://a"})
	}
}

// putConcurrent: nodes that refresh the same addresses, and one that drops some,
// do not keep each other from an end.
func putConcurrent(e *env) {
	var regs []store.Registration
	for i := range 40 {
		regs = append(regs, registered(fmt.Sprintf("app-%d", i%3), fmt.Sprintf("http://%d", i)))
	}
	reversed := slices.Clone(regs)
	slices.Reverse(reversed)
	var errs [6]error
	var calls []func()
	for i := range errs {
		calls = append(calls, func() {
			for range 5 {
				var err error
				switch i % 3 {
				case 0:
					err = e.PutAddresses(e.ctx, regs)
				case 1:
					err = e.PutAddresses(e.ctx, reversed)
				case 2:
					err = e.DropAddresses(e.ctx, reversed[:20])
				}
				if err != nil && !errors.Is(err, store.ErrLocked) {
					errs[i] = err
				}
			}
		})
	}
	e.race(calls...)
	for _, err := range errs {
		e.must(err)
	}
	e.put(reversed...)
	want(e, "registrations", len(e.mustRegistrations(store.RegistrationFilter{})), len(regs))
}

func dropRemoves(e *env) {
	e.put(registered("app", "http://a"), registered("app", "http://b"), registered("app", "http://c"), registered("other", "http://a"))
	for range 2 {
		e.drop(registered("app", "http://c"), registered("none", "http://b"), registered("app", "http://a"))
		want(e, "addresses after the drop", names(e.mustAddresses("app", time.Hour)), []string{"app http://b"})
	}
	want(e, "addresses of the other app", names(e.mustAddresses("other", time.Hour)), []string{"other http://a"})
}

// dropBootID: a process that ends must not take away what the next one at its
// address has registered.
func dropBootID(e *env) {
	anonymous := store.Registration{App: "app", Address: "http://b"}
	e.put(registered("app", "http://a"), anonymous)
	former, whoever := registered("app", "http://a"), registered("app", "http://a")
	former.BootID, whoever.BootID = "former", ""
	before := e.snapshot()
	e.drop(former, registered("app", "http://b"))
	want(e, "state after a drop by other processes", e.snapshot(), before)
	e.drop(former, registered("app", "http://a"))
	want(e, "addresses after a drop by its own process", names(e.mustAddresses("app", time.Hour)), []string{"app http://b"})
	e.put(registered("app", "http://a"))
	e.drop(whoever, anonymous)
	want(e, "addresses after a drop by who knows no process", len(e.mustAddresses("app", time.Hour)), 0)
}

func addressesExpire(e *env) {
	e.put(registered("app", "http://a"))
	if regs := e.mustAddresses("app", -time.Hour); len(regs) != 0 {
		e.Fatalf("refreshed in an hour from now: %+v", regs)
	}
	e.eventually("an address older than 5 ms is left out", func() bool {
		return len(e.mustAddresses("app", 5*time.Millisecond)) == 0
	})
	want(e, "addresses within an hour", names(e.mustAddresses("app", time.Hour)), []string{"app http://a"})
	want(e, "registrations, however old", names(e.mustRegistrations(store.RegistrationFilter{})), []string{"app http://a"})
}

// manyRegistrations are of apps that have no group, in order.
func (e *env) manyRegistrations() []string {
	e.Helper()
	list := []string{"B http://z", "app http://A", "app http://a:10", "app http://a:9", "app-1 http://a", "app1 http://a", "app1 http://b", "b http://a", "ä http://a"}
	var regs []store.Registration
	for _, name := range list {
		var reg store.Registration
		_, err := fmt.Sscan(name, &reg.App, &reg.Address)
		e.must(err)
		regs = append(regs, reg)
	}
	slices.Reverse(regs)
	e.put(regs...)
	return list
}

func registrationsAll(e *env) {
	e.must(e.EnsureGroup(e.ctx, "app"))
	e.must(e.EnsureGroup(e.ctx, "nobody"))
	list := e.manyRegistrations()
	want(e, "registrations", names(e.mustRegistrations(store.RegistrationFilter{})), list)
}

func registrationsPages(e *env) {
	list := e.manyRegistrations()
	for limit := 1; limit < 5; limit++ {
		var got []string
		var f store.RegistrationFilter
		for f.Limit = limit; len(got) <= len(list); {
			page := e.mustRegistrations(f)
			e.check(len(page) <= limit, "a page of %d, want at most %d", len(page), limit)
			if len(page) == 0 {
				break
			}
			last := page[len(page)-1]
			f.After, f.AfterAddress = last.App, last.Address
			got = append(got, names(page)...)
		}
		want(e, fmt.Sprintf("registrations of all pages of %d", limit), got, list)
	}
	want(e, "registrations behind what is not there", names(e.mustRegistrations(store.RegistrationFilter{After: "app", AfterAddress: "http://a:100", Limit: 2})),
		[]string{"app http://a:9", "app-1 http://a"})
	want(e, "registrations behind an app's name alone", names(e.mustRegistrations(store.RegistrationFilter{After: "app", Limit: 1})), []string{"app http://A"})
	want(e, "registrations behind all of an app", names(e.mustRegistrations(store.RegistrationFilter{After: "app\x01", Limit: 1})), []string{"app-1 http://a"})
}

func registrationsOfApp(e *env) {
	e.manyRegistrations()
	of := func(f store.RegistrationFilter) []string { f.App = "app"; return names(e.mustRegistrations(f)) }
	all := []string{"app http://A", "app http://a:10", "app http://a:9"}
	want(e, "registrations of an app", of(store.RegistrationFilter{}), all)
	want(e, "its first", of(store.RegistrationFilter{Limit: 1}), all[:1])
	want(e, "those behind its first", of(store.RegistrationFilter{After: "app", AfterAddress: "http://A"}), all[1:])
	want(e, "those behind an app before it", of(store.RegistrationFilter{After: "B", AfterAddress: "http://zz"}), all)
	want(e, "those behind an app after it", len(of(store.RegistrationFilter{After: "app-1"})), 0)
	want(e, "registrations of an unknown app", len(e.mustRegistrations(store.RegistrationFilter{App: "ap"})), 0)
}

func registrationsDefaultLimit(e *env) {
	var regs []store.Registration
	for i := range 120 {
		regs = append(regs, registered("app", fmt.Sprintf("http://%03d", i)))
	}
	e.put(regs...)
	got := names(e.mustRegistrations(store.RegistrationFilter{}))
	want(e, "registrations without a limit", got, names(regs)[:100])
	want(e, "registrations of an app without a limit", names(e.mustRegistrations(store.RegistrationFilter{App: "app"})), got)
	want(e, "addresses", len(e.mustAddresses("app", time.Hour)), 120)
}

// registrationsWithin goes by the page as well: those that are too old take no room on it.
func registrationsWithin(e *env) {
	e.put(registered("app", "http://a"), registered("app", "http://b"), registered("other", "http://a"))
	for gap := 20 * time.Millisecond; gap < e.patience; gap *= 2 {
		e.eventually("addresses grow old", func() bool { return len(e.mustRegistrations(store.RegistrationFilter{Within: gap})) == 0 })
		want(e, "registrations of an hour", len(e.mustRegistrations(store.RegistrationFilter{Within: time.Hour})), 3)
		began := time.Now()
		e.put(registered("app", "http://b"), registered("other", "http://a"))
		of, all := e.mustRegistrations(store.RegistrationFilter{App: "app", Within: gap, Limit: 1}), e.mustRegistrations(store.RegistrationFilter{Within: gap, Limit: 2})
		if time.Since(began) < gap {
			want(e, "the first of an app that was refreshed lately", names(of), []string{"app http://b"})
			want(e, "the first of all that were", names(all), []string{"app http://b", "other http://a"})
			return
		}
	}
	e.Errorf("a refresh and the calls behind it took more than %v", e.patience/2)
}

// forgetsOld cannot stop the clock between the refresh and the call. Where the two
// were further apart than the ages that it tells from each other, it tries again
// with greater ones.
func forgetsOld(e *env) {
	for gap := 20 * time.Millisecond; gap < e.patience; gap *= 2 {
		e.put(registered("app", "http://old"), registered("other", "http://old"))
		e.eventually("addresses grow old", func() bool { return len(e.mustAddresses("other", gap)) == 0 })
		e.must(e.ForgetAddresses(e.ctx, time.Hour))
		want(e, "registrations after what is an hour old was forgotten", len(e.mustRegistrations(store.RegistrationFilter{})), 2)
		began := time.Now()
		e.put(registered("app", "http://fresh"))
		e.must(e.ForgetAddresses(e.ctx, gap))
		if time.Since(began) < gap {
			want(e, "registrations after old ones were forgotten", names(e.mustRegistrations(store.RegistrationFilter{})), []string{"app http://fresh"})
			return
		}
		e.must(e.ForgetAddresses(e.ctx, -time.Hour))
	}
	e.Errorf("a refresh and the call behind it took more than %v", e.patience/2)
}

func (e *env) noteServed(apps ...store.Served) {
	e.Helper()
	e.must(e.NoteServed(e.ctx, apps))
}

func (e *env) mustServed(apps ...string) []store.Served {
	e.Helper()
	list, err := e.Served(e.ctx, apps)
	e.must(err)
	return list
}

func servedLast(e *env) {
	want(e, "served apps before any was noted", len(e.mustServed("app", "other")), 0)
	e.noteServed(store.Served{App: "other", Gone: e.at(-5)}, store.Served{App: "app", By: store.ServedRegistered}, store.Served{App: "app", By: store.ServedAttached})
	want(e, "served apps, each once and in order", e.mustServed("other", "app", "none", "app"), []store.Served{{App: "app", By: store.ServedAttached}, {App: "other", Gone: e.at(-5)}})
	e.noteServed(store.Served{App: "app", By: store.ServedRegistered})
	want(e, "another kind of executors", e.mustServed("app"), []store.Served{{App: "app", By: store.ServedRegistered}})
	e.noteServed(store.Served{App: "app"})
	want(e, "nothing known of who serves it", e.mustServed("app"), []store.Served{{App: "app", By: store.ServedRegistered}})
	e.noteServed()
	want(e, "no app", len(e.mustServed()), 0)
}

func servedGone(e *env) {
	e.noteServed(store.Served{App: "app", By: store.ServedAttached})
	e.noteServed(store.Served{App: "app", Gone: e.at(1).Add(500)})
	want(e, "gone, to the millisecond, and served last as before", e.mustServed("app"), []store.Served{{App: "app", By: store.ServedAttached, Gone: e.at(1)}})
	e.noteServed(store.Served{App: "app", By: store.ServedAttached, Gone: e.at(9)})
	want(e, "gone for longer than another node says", e.mustServed("app"), []store.Served{{App: "app", By: store.ServedAttached, Gone: e.at(1)}})
	e.noteServed(store.Served{App: "app", By: store.ServedAttached})
	e.noteServed(store.Served{App: "app", By: store.ServedAttached, Gone: e.at(9)})
	want(e, "gone again", e.mustServed("app"), []store.Served{{App: "app", By: store.ServedAttached, Gone: e.at(9)}})
}
