package wire_test

import (
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// TestAllowIP: the default connects to no address where clouds keep their secrets, and
// to executors on the same host or in a private network.
func TestAllowIP(t *testing.T) {
	for _, addr := range []string{
		"169.254.169.254:80", "[::ffff:169.254.169.254]:80", "[fe80::1%lo]:80", "0.0.0.0:80", "224.0.0.1:80",
		"100.100.100.200:80", "[::ffff:100.100.100.200]:80", "168.63.129.16:80",
		"[fd00:ec2::254]:80", "[fd00:ec2::254%lo]:80", "[fd20:ce::254]:80",
	} {
		if err := wire.AllowIP(addr); err == nil || !strings.Contains(err.Error(), "no address of a peer") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{"127.0.0.1:9999", "[::1]:9999", "10.0.0.1:9999", "100.100.100.201:9999", "[fd00:ec2::253]:9999"} {
		if err := wire.AllowIP(addr); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
