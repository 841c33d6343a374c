package storetest

import "time"

func registryCases() []testCase {
	return []testCase{
		{"AddressesAreSorted", addressesSorted},
		{"PutRefreshes", putRefreshes},
		{"DropRemoves", dropRemoves},
		{"OldAddressesAreLeftOut", addressesExpire},
	}
}

func (e *env) mustAddresses(app string, maxAge time.Duration) []string {
	e.Helper()
	addrs, err := e.Addresses(e.ctx, app, maxAge)
	e.must(err)
	return addrs
}

func addressesSorted(e *env) {
	for _, a := range []string{"http://b:1", "http://B:1", "http://a:10", "http://a:9"} {
		e.must(e.PutAddress(e.ctx, "app", a))
	}
	e.must(e.PutAddress(e.ctx, "other", "http://c"))
	want(e, "addresses", e.mustAddresses("app", time.Hour), []string{"http://B:1", "http://a:10", "http://a:9", "http://b:1"})
	want(e, "addresses of an unknown app", len(e.mustAddresses("none", time.Hour)), 0)
}

func putRefreshes(e *env) {
	for range 3 {
		e.must(e.PutAddress(e.ctx, "app", "http://a"))
	}
	want(e, "addresses", e.mustAddresses("app", time.Hour), []string{"http://a"})
}

func dropRemoves(e *env) {
	e.must(e.PutAddress(e.ctx, "app", "http://a"))
	e.must(e.PutAddress(e.ctx, "other", "http://a"))
	for range 2 {
		e.must(e.DropAddress(e.ctx, "app", "http://a"))
		want(e, "addresses after the drop", len(e.mustAddresses("app", time.Hour)), 0)
	}
	want(e, "addresses of the other app", e.mustAddresses("other", time.Hour), []string{"http://a"})
}

func addressesExpire(e *env) {
	e.must(e.PutAddress(e.ctx, "app", "http://a"))
	e.eventually("an address older than 5 ms is left out", func() bool {
		return len(e.mustAddresses("app", 5*time.Millisecond)) == 0
	})
	want(e, "addresses within an hour", e.mustAddresses("app", time.Hour), []string{"http://a"})
}
