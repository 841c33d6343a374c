package wire_test

import (
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

func TestParseAddress(t *testing.T) {
	for _, addr := range []string{
		"http://10.0.0.7:9999/", "http://10.0.0.7:9999", "https://jobs.example.org", "http://[::1]:9999/", "HTTP://Host/xxl-job-admin",
	} {
		if _, err := wire.ParseAddress(addr); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{
		"", "10.0.0.7:9999", "//10.0.0.7:9999", "ftp://h/", "file:///etc/passwd", "http://", "http://:9999/", "http://user:word@h/", "http://user@h/",
		"http://h/?token=x", "http://h/?", "http://h/#x", "http://h/#", "http:h", "http://h:0/", "http://h:65536/", "http://h:/", "http://h:x/",
		"http://h\r\nX: y/", "http://h /", " http://h/", "http://" + strings.Repeat("h", 255) + "/", "local://abc", "javascript:alert(1)",
	} {
		_, err := wire.ParseAddress(addr)
		if err == nil {
			t.Errorf("%q was taken", addr)
		} else if strings.Contains(err.Error(), "word") {
			t.Errorf("%q: the error repeats it: %v", addr, err)
		}
	}
}

// TestTrap15AddressesCompareNormalised is trap 15.
func TestTrap15AddressesCompareNormalised(t *testing.T) {
	for _, same := range [][]string{
		{"http://10.0.0.7:9999/", "http://10.0.0.7:9999", "HTTP://10.0.0.7:9999", " http://10.0.0.7:9999/ "},
		{"http://host/", "http://HOST:80", "http://host"},
		{"https://host", "https://host:443/"},
		{"http://[::1]:80/", "http://[0:0::1]"},
		{"http://host/a/", "http://host/a"},
		{"local://abc"},
		{"http://user@host/"}, // no address: as it is
	} {
		want := wire.NormalAddress(same[0])
		for _, addr := range same {
			if got := wire.NormalAddress(addr); got != want {
				t.Errorf("%q: %q, want %q", addr, got, want)
			}
		}
	}
	for _, addr := range []string{"http://host:443", "https://host:80", "http://host/A", "https://host"} {
		if wire.NormalAddress(addr) == wire.NormalAddress("http://host/a") || wire.NormalAddress(addr) == wire.NormalAddress("http://host") {
			t.Errorf("%q is another address", addr)
		}
	}
}

// TestAllowIP: the default connects to no address where clouds keep their secrets, in
// whatever form of IPv6 it comes, and to executors on the same host or in a private
// network.
func TestAllowIP(t *testing.T) {
	for _, addr := range []string{
		"169.254.169.254:80", "[::ffff:169.254.169.254]:80", "[fe80::1%lo]:80", "0.0.0.0:80", "[::]:80", "224.0.0.1:80", "[ff02::1]:80",
		"[::ffff:0.0.0.0]:80", "255.255.255.255:80",
		"100.100.100.200:80", "[::ffff:100.100.100.200]:80", "168.63.129.16:80", "192.0.0.192:80", "192.0.0.8:80", "[::ffff:192.0.0.170]:80",
		"[fd00:ec2::254]:80", "[fd00:ec2::254%lo]:80", "[fd00:ec2::23]:80", "[fd00:ec2::253]:80", "[fd20:ce::254]:80", "[fd00:c1::a9fe:a9fe]:80", "[fd00:42::42]:80",
		"[64:ff9b::169.254.169.254]:80", "[64:ff9b::a9fe:a9fe%eth0]:80", "[64:ff9b::100.100.100.200]:80", "[64:ff9b::0.0.0.0]:80",
		"[64:ff9b:1:a9fe:a9:fe00::]:80",        // behind 48 bits
		"[64:ff9b:1:a9:fe:a9fe::]:80",          // behind 56
		"[64:ff9b:1:7:a9:fea9:fe00:0]:80",      // behind 64
		"[64:ff9b:1::169.254.169.254]:80",      // behind 96
		"[64:ff9b:1:abcd::100.100.100.200]:80", // behind 96, of another network
		"[2002:a9fe:a9fe::1]:80", "[2002:7f00:1::]:80", "[2001:0:a9fe:a9fe::1]:80",
		"[::169.254.169.254]:80", "[::10.0.0.1]:80", "[::2]:80", "[fec0::1]:80", "[feff::1]:80",
	} {
		if err := wire.AllowIP(addr); err == nil || !strings.Contains(err.Error(), "is no address of a peer but ") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{
		"127.0.0.1:9999", "[::1]:9999", "[::ffff:127.0.0.1]:80", "10.0.0.1:9999", "192.168.0.1:9999", "172.16.0.1:80", "100.64.0.1:80",
		"100.100.100.201:9999", "168.63.129.17:80", "192.0.1.1:80", "169.253.0.1:80", "223.255.255.255:80",
		"[fd00:ec3::254]:9999", "[fd20:ce::255]:80", "[fd00:c1::1]:80", "[fd00:42::43]:80", "[fc00::1]:80",
		"[64:ff9b::10.0.0.1]:80", "[64:ff9b:1:a00:0:100::]:80", "[64:ff9b:1::10.0.0.1]:80", "[64:ff9b:2::169.254.169.254]:80",
		"[2003::1]:80", "[2001:db8::1]:80", "[2001:1::1]:80", "[2a00::1]:443",
	} {
		if err := wire.AllowIP(addr); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if wire.AllowIP("no address") == nil {
		t.Error("what is no address is allowed")
	}
}

// TestAddressSlips: what people write instead of an address is told in words that help.
func TestAddressSlips(t *testing.T) {
	for addr, words := range map[string]string{
		"10.0.0.1:9999":          "must begin with http://",
		"xxl-job:9999":           "must begin with http://",
		"executor.example":       "must begin with http://",
		"[::1]:9999":             "must begin with http://",
		" http://10.0.0.1:9999":  "a comma or a blank",
		"http://10.0.0.1:9999\n": "a comma or a blank",
		"http://10.0.0.1:9999,http://10.0.0.2:9999":  "one by one",
		"http://10.0.0.1:9999, http://10.0.0.2:9999": "one by one",
		"10.0.0.1:9999,10.0.0.2:9999":                "one by one",
		"http://10.0.0.1:port":                       "not a URL",
	} {
		if _, err := wire.ParseAddress(addr); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v, want %q", addr, err, words)
		}
	}
}
