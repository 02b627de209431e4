package supervisor

import (
	"path"
	"slices"
	"testing"
)

// TestLanguageSettings: sandboxes see the settings of languages, but no file that may hold a password.
func TestLanguageSettings(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"java-17-openjdk/security":                      true,
		"java-17-openjdk/jvm-amd64.cfg":                 true,
		"java-17-openjdk/management/jmxremote.password": false,
		"java-17-openjdk/management":                    false,
		"maven/m2.conf":                                 true,
		"maven/settings.xml":                            false,
		"php/8.2/cli/conf.d":                            false,
		"php/8.2/cli/php.ini":                           false,
		"dotnet/install_location_x64":                   true,
	} {
		shown := slices.ContainsFunc(languageSettings(), func(pattern string) bool {
			ok, err := path.Match(pattern, name)
			return ok && err == nil
		})
		if shown != want {
			t.Errorf("%s is shown: %t", name, shown)
		}
	}
}
