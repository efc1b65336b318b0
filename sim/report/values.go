package report

import (
	"math"
	"strconv"
	"time"

	"github.com/watchmill/watchmill/sim/scenario"
)

// unmeasured is shown in place of a value that was not measured.
const unmeasured = "–"

// value returns a metric's value as text.
func (r *Report) value(name string, format func(float64) string) string {
	value, ok := r.Metrics[name]
	if !ok {
		return unmeasured
	}
	return format(value)
}

// Value formats a metric's value in its unit.
func Value(unit scenario.Unit, value float64) string {
	switch unit {
	case scenario.Time:
		return Seconds(value)
	case scenario.Bytes:
		return Memory(value)
	case scenario.PerSecond:
		return Number(value) + "/s"
	}
	return Number(value)
}

// inFull formats a metric's value in its unit with all digits.
func inFull(unit scenario.Unit, value float64) string {
	digits := strconv.FormatFloat(value, 'f', -1, 64)
	switch unit {
	case scenario.Time:
		return digits + "s"
	case scenario.Bytes:
		return digits + " B"
	case scenario.PerSecond:
		return digits + "/s"
	}
	return digits
}

// Seconds formats a duration in seconds with three digits, such as 1.23ms, 12.3ms or
// 2m30s.
func Seconds(s float64) string {
	if !(math.Abs(s) < math.MaxInt64/1e9) { // more than a time.Duration has
		return strconv.FormatFloat(s/3600, 'g', 3, 64) + "h"
	}
	d := time.Duration(math.Round(s * 1e9))
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		switch {
		case d.Abs() >= 100*unit:
			return d.Round(unit).String()
		case d.Abs() >= 10*unit:
			return d.Round(unit / 10).String()
		case d.Abs() >= unit:
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// Memory formats a number of bytes, such as 512 B or 1.5 KiB.
func Memory(bytes float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if math.Abs(bytes) >= unit.size {
			return strconv.FormatFloat(bytes/unit.size, 'f', 1, 64) + " " + unit.name
		}
	}
	return strconv.FormatFloat(bytes, 'f', 0, 64) + " B"
}

// Number formats a number without its fraction, with commas between thousands.
func Number[N int | int64 | uint64 | float64](n N) string {
	whole := math.Round(float64(n))
	digits := strconv.FormatFloat(math.Abs(whole), 'f', 0, 64)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	if whole < 0 {
		return "-" + digits
	}
	return digits
}
