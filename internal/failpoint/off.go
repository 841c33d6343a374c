//go:build !failpoint || !unix

package failpoint

// Enabled reports whether this program was built with failpoints.
const Enabled = false

// Hit does nothing: the program was built without the tag failpoint.
func Hit(string) {}
