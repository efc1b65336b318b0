package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The size of a chart and the margins around its plot, in SVG's units.
const (
	chartWidth              = 560.0
	marginLeft, marginRight = 66.0, 12.0
	marginTop, marginBottom = 30.0, 42.0
	plotWidth               = chartWidth - marginLeft - marginRight
	plotHeight              = 176.0
	plotBottom              = marginTop + plotHeight
)

// chart is one chart, in the form in which the template draws it.
type chart struct {
	ID, Title, About string
	// XCaption and YCaption are the captions of the axes.
	XCaption, YCaption string
	XTicks, YTicks     []tick
	Lines              []line
	// Bands are faults that lasted, and Marks faults of one moment.
	Bands []band
	Marks []mark
	// Spots are columns that show their values below the pointer.
	Spots []spot
	// Lanes are the faults by name, in the chart of faults.
	Lanes []lane
	// Empty is set if all values are zero.
	Empty bool
	// Plot is the height of the plot.
	Plot float64
	// Description describes the chart for screen readers.
	Description string
}

type (
	tick struct {
		At    float64
		Label string
	}
	line struct {
		Name string
		// Number selects the colour. Area is the path of the area below the line, ""
		// if it is not filled.
		Number       int
		Points, Area string
	}
	band struct {
		X, Width float64
		Name     string
	}
	mark struct {
		X    float64
		Name string
	}
	lane struct {
		Y     float64
		Name  string
		Bands []band
		Marks []mark
	}
	spot struct {
		X, Width float64
		Text     string
	}
)

// Width and the following return positions for the template.
func (c chart) Width() float64  { return chartWidth }
func (c chart) Height() float64 { return marginTop + c.Plot + marginBottom }
func (c chart) Left() float64   { return marginLeft }
func (c chart) Right() float64  { return chartWidth - marginRight }
func (c chart) Middle() float64 { return marginLeft + plotWidth/2 }
func (c chart) Top() float64    { return marginTop }
func (c chart) Bottom() float64 { return marginTop + c.Plot }

// series has the points of a line.
type series struct {
	name   string
	xs, ys []float64
	// gaps is set if a zero means that there is no value, which interrupts the line.
	gaps bool
}

// draw returns a chart of the series.
func draw(id, title, about string, x, y scale, format func(float64) string, all ...series) chart {
	c := chart{ID: id, Title: title, About: about, XCaption: x.caption, YCaption: y.caption, Plot: plotHeight, Empty: true}
	for _, t := range x.ticks {
		c.XTicks = append(c.XTicks, tick{xPosition(x, t.value), t.label})
	}
	for _, t := range y.ticks {
		c.YTicks = append(c.YTicks, tick{yPosition(y, t.value), t.label})
	}
	for i, s := range all {
		c.Lines = append(c.Lines, s.draw(i+1, x, y, len(all) == 1))
		c.Empty = c.Empty && largest(s.ys) == 0
	}
	c.Description = title + ", " + about + ": " + describe(format, all)
	c.Spots = spots(x, format, all)
	return c
}

func xPosition(x scale, v float64) float64 { return marginLeft + x.at(v)*plotWidth }
func yPosition(y scale, v float64) float64 { return plotBottom - y.at(v)*plotHeight }

// describe returns the range of each series.
func describe(format func(float64) string, all []series) string {
	var ranges []string
	for _, s := range all {
		low, high := least(s.ys), largest(s.ys)
		if !s.gaps && len(s.ys) > 0 {
			low = slices.Min(s.ys)
		}
		ranges = append(ranges, fmt.Sprintf("%s from %s to %s", s.name, format(low), format(high)))
	}
	return strings.Join(ranges, "; ")
}

// draw returns the line as a path, with a filled area if it is the only line.
func (s *series) draw(number int, x, y scale, alone bool) line {
	var path strings.Builder
	pen := "M"
	for i := range s.xs {
		if s.gaps && s.ys[i] == 0 {
			pen = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%.1f,%.1f", pen, xPosition(x, s.xs[i]), yPosition(y, s.ys[i]))
		if pen == "M" && s.gaps {
			path.WriteString("l0,0") // a value between two gaps shows as a dot
		}
		pen = "L"
	}
	l := line{Name: s.name, Number: number, Points: path.String()}
	if n := len(s.xs); alone && !s.gaps && n > 0 {
		l.Area = fmt.Sprintf("%sL%.1f,%.1fL%.1f,%.1fZ", l.Points,
			xPosition(x, s.xs[n-1]), plotBottom, xPosition(x, s.xs[0]), plotBottom)
	}
	return l
}

// spots returns a column around each point. All series have the same xs.
func spots(x scale, format func(float64) string, all []series) (columns []spot) {
	if len(all) == 0 {
		return nil
	}
	xs := all[0].xs
	for i := range xs {
		left, right := xPosition(x, xs[i]), xPosition(x, xs[i])
		if i > 0 {
			left = (left + xPosition(x, xs[i-1])) / 2
		}
		if i+1 < len(xs) {
			right = (right + xPosition(x, xs[i+1])) / 2
		}
		var values []string
		for _, s := range all {
			if i < len(s.ys) && !(s.gaps && s.ys[i] == 0) {
				values = append(values, s.name+" "+format(s.ys[i]))
			}
		}
		columns = append(columns, spot{
			X: left, Width: max(1, right-left), Text: cmp.Or(strings.Join(values, ", "), "none"),
		})
	}
	return columns
}

// scale maps values to positions along an axis, from 0 to 1.
type scale struct {
	at    func(v float64) float64
	ticks []scaleTick
	// caption names what the axis shows, with the unit unless the ticks have it.
	caption string
}

// scaleTick is a value with its label on an axis.
type scaleTick struct {
	value float64
	label string
}

// counting returns a scale of counts from zero to at least most.
func counting(most float64) scale { return stepped(most, max(1, roundStep(most/4)), brief) }

// brief formats a number with few characters, for a tick.
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

// memory returns a scale of bytes, with round steps in KiB, MiB or GiB.
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
	steps := math.Ceil(most / step)
	top := step * steps
	s := scale{at: func(v float64) float64 { return v / top }}
	for i := 0.0; i <= steps; i++ { // counted, since top may be infinite
		s.ticks = append(s.ticks, scaleTick{i * step, label(i * step)})
	}
	return s
}

// roundStep rounds the step up to 1, 2 or 5 times a power of ten.
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

// elapsed returns a scale of times from zero to exactly end.
func elapsed(end float64) scale {
	s := stepped(end, roundStep(end/4), func(v float64) string {
		if v >= 1e4 { // which would have an exponent
			return brief(v)
		}
		return strconv.FormatFloat(v, 'g', 4, 64)
	})
	s.caption = "seconds since the load began"
	if end > 0 {
		s.at = func(v float64) float64 { return v / end }
	}
	for len(s.ticks) > 1 && s.ticks[len(s.ticks)-1].value > end*1.0001 {
		s.ticks = s.ticks[:len(s.ticks)-1]
	}
	return s
}

// logarithmic returns a logarithmic scale of times, in whole decades around the
// values.
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

// nines returns a scale of percentiles up to the last, on which 90, 99, 99.9 and so on
// are at equal distances.
func nines(last float64) scale {
	room := func(p float64) float64 { return -math.Log10(max(1e-9, 1-p/100)) }
	end := max(1, room(last))
	s := scale{caption: "percentile", at: func(p float64) float64 { return min(1, room(p)/end) }}
	s.ticks = append(s.ticks, scaleTick{0, "0"})
	if end <= 4 { // otherwise it is too close to its neighbours
		s.ticks = append(s.ticks, scaleTick{50, "50"})
	}
	for n := 1.0; n <= end+0.01; n++ {
		p := 100 * (1 - math.Pow(10, -n))
		s.ticks = append(s.ticks, scaleTick{p, strconv.FormatFloat(p, 'g', 9, 64)})
	}
	return s
}
