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
