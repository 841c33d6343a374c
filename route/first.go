package route

// NewFirst returns the router FIRST: always the first address of the list.
// XXL-JOB sorts the lists of automatic groups as strings, so this is the
// smallest address there.
func NewFirst() Func {
	return func(addrs []string) []string { return only(addrs, 0) }
}

// NewLast returns the router LAST: always the last address of the list.
func NewLast() Func {
	return func(addrs []string) []string { return only(addrs, len(addrs)-1) }
}
