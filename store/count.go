package store

// CountCap is where the counting of missed instants stops: an Run whose Count is
// CountCap stands for that many at least.
const CountCap = 1000
