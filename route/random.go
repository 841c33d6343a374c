package route

import "math/rand/v2"

// NewRandom returns the router RANDOM: any address, each as likely as the
// others.
func NewRandom() Func {
	return func(addrs []string) []string { return only(addrs, rand.IntN(len(addrs))) }
}
