package report

import (
	"math"
	"strconv"
	"strings"
)

// scale maps values to positions along an axis, from 0 to 1.
type scale struct {
	at    func(v float64) float64
	ticks []scaleTick
	// caption says what the axis counts, and in which unit unless its ticks do.
	caption string
}

// scaleTick is a value that an axis names.
type scaleTick struct {
	value float64
	label string
}

// counting returns a scale of whole numbers from zero to at least most.
func counting(most float64) scale { return stepped(most, max(1, roundStep(most/4)), brief) }

// brief prints a number in few letters: a tick has little room.
func brief(n float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if n >= 10*unit.size || n >= unit.size && unit.size > 1e3 {
			return strconv.FormatFloat(n/unit.size, 'g', 4, 64) + unit.name
		}
	}
	return Number(n)
}

// memory returns a scale of bytes, with steps that are round in KiB, MiB or GiB.
func memory(most float64) scale {
	unit := 1.0
	for unit*1024 <= most {
		unit *= 1024
	}
	s := stepped(most, unit*roundStep(most/unit/4), func(v float64) string { return strings.Replace(Memory(v), ".0 ", " ", 1) })
	s.caption = "memory"
	return s
}

// stepped returns a scale from zero in equal steps to at least most.
func stepped(most, step float64, label func(float64) string) scale {
	most = max(most, step)
	top := step * math.Ceil(most/step)
	s := scale{at: func(v float64) float64 { return v / top }}
	for i := 0; float64(i)*step <= top*1.0001; i++ {
		s.ticks = append(s.ticks, scaleTick{float64(i) * step, label(float64(i) * step)})
	}
	return s
}

// roundStep returns 1, 2 or 5 times a power of ten, at least the step.
func roundStep(step float64) float64 {
	if !(step > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= step {
			return factor * power
		}
	}
	return 10 * power
}

// elapsed returns a scale of times from zero to end, exactly.
func elapsed(end float64) scale {
	s := stepped(end, roundStep(end/4), func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) })
	s.caption = "seconds since the load began"
	if end > 0 {
		s.at = func(v float64) float64 { return v / end }
	}
	for len(s.ticks) > 1 && s.ticks[len(s.ticks)-1].value > end*1.0001 {
		s.ticks = s.ticks[:len(s.ticks)-1]
	}
	return s
}

// logarithmic returns a scale of times, in whole decades around the values.
func logarithmic(least, most float64) scale {
	if !(least > 0) {
		least = 1e-6
	}
	low := math.Floor(math.Log10(least) + 1e-9)
	high := math.Max(low+1, math.Ceil(math.Log10(math.Max(most, least))-1e-9))
	s := scale{caption: "time, logarithmic", at: func(v float64) float64 {
		return max(0, (math.Log10(max(v, 1e-9))-low)/(high-low))
	}}
	for decade := low; decade <= high; decade++ {
		v := math.Pow(10, decade)
		s.ticks = append(s.ticks, scaleTick{v, Seconds(v)})
	}
	return s
}

// nines returns a scale of percentiles on which each further nine takes as much
// room, up to the given one.
func nines(last float64) scale {
	room := func(p float64) float64 { return -math.Log10(max(1e-9, 1-p/100)) }
	end := max(1, room(last))
	s := scale{caption: "percentile", at: func(p float64) float64 { return min(1, room(p)/end) }}
	s.ticks = append(s.ticks, scaleTick{0, "0"})
	if end <= 4 { // else there is no room between its neighbours
		s.ticks = append(s.ticks, scaleTick{50, "50"})
	}
	for n := 1.0; n <= end+0.01; n++ {
		p := 100 * (1 - math.Pow(10, -n))
		s.ticks = append(s.ticks, scaleTick{p, strconv.FormatFloat(p, 'g', 9, 64)})
	}
	return s
}
