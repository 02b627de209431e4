package fleet

import (
	"errors"
	"regexp"
	"strings"
)

// ErrAddress says that the database's address cannot be read.
var ErrAddress = errors.New("the database's address cannot be read")

// wrongAddress says what is wrong with an address. The driver's own words may quote a part of the password: they are not shown.
func wrongAddress(err error) string {
	for _, known := range [][2]string{
		{"failed to parse as URL", "it is no valid URL; in a password write % as %25, and / as %2F"},
		{"failed to parse as keyword/value", "it is neither like postgres://USER@HOST/NAME nor like host=HOST user=USER dbname=NAME"},
		{"invalid port", "its port is no number from 1 to 65535; in a password write / as %2F"},
		{"failed to configure TLS", "its sslmode is unknown, or a file that it names for TLS cannot be read"},
		{"failed to read service", "its service is in no service file that can be read"},
	} {
		if strings.Contains(err.Error(), "`: "+known[0]) {
			return known[1]
		}
	}
	wrongKey := regexp.MustCompile("`: (?:invalid|unknown|cannot parse) ([a-z_]+)")
	if m := wrongKey.FindStringSubmatch(err.Error()); m != nil {
		return "its " + m[1] + " has no valid value"
	}
	return "it is not like postgres://USER@HOST/NAME, or names a file that cannot be read"
}
