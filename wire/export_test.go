package wire

import "net/http"

// AllowIP is what the transport's default says about an address that is about to be
// connected to, without connecting.
func AllowIP(address string) error { return control(DefaultAllowIP)("tcp", address, nil) }

// Holders is for how many callers a handler keeps account of slots, at one of its
// endpoints.
func Holders(h http.Handler, endpoint string) int {
	return h.(*server).endpoints[endpoint].slots.Holders()
}
