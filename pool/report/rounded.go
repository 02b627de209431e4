package report

import "time"

// Rounded rounds a duration for people, the same way in every place: to tenths of a second below ten seconds, to seconds below
// an hour, and then to minutes.
func Rounded(d time.Duration) time.Duration {
	switch d = max(0, d); { // a clock may have been set back
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d < time.Hour:
		return d.Round(time.Second)
	}
	return d.Round(time.Minute)
}
