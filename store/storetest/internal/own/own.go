// Package own has what only the tests of package storetest can give it.
package own

// Tests says that it is they who ask.
type Tests struct{}
