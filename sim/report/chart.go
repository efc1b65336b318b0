package report

import (
	"fmt"
	"slices"
	"strings"
)

// The room of a chart, in SVG's units: the whole, and the margins around the
// plot.
const (
	chartWidth              = 560.0
	marginLeft, marginRight = 66.0, 12.0
	marginTop, marginBottom = 30.0, 42.0
	plotWidth               = chartWidth - marginLeft - marginRight
	plotHeight              = 176.0
	plotBottom              = marginTop + plotHeight
)

// chart is one diagram, as the template draws it.
type chart struct {
	ID, Title, About string
	// XCaption and YCaption say what the axes count.
	XCaption, YCaption string
	XTicks, YTicks     []tick
	Lines              []line
	// Bands are faults that lasted, Marks those of a moment.
	Bands []band
	Marks []mark
	// Spots are columns that show their values when pointed at.
	Spots []spot
	// Lanes are faults by name, in a chart of faults.
	Lanes []lane
	// Empty: there is no value but zero.
	Empty bool
	// Plot is how high the plot is.
	Plot float64
	// Says is what the chart shows, for those who cannot see it.
	Says string
}

type (
	tick struct {
		At    float64
		Label string
	}
	line struct {
		Name string
		// Number picks the colour, Area is filled below.
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
		X, Width, Middle, Y float64
		Text                string
	}
)

// Width and the others tell the template the room of the chart.
func (c chart) Width() float64  { return chartWidth }
func (c chart) Height() float64 { return marginTop + c.Plot + marginBottom }
func (c chart) Left() float64   { return marginLeft }
func (c chart) Right() float64  { return chartWidth - marginRight }
func (c chart) Middle() float64 { return marginLeft + plotWidth/2 }
func (c chart) Top() float64    { return marginTop }
func (c chart) Bottom() float64 { return marginTop + c.Plot }

// series is a line before it is drawn.
type series struct {
	name   string
	xs, ys []float64
	// gaps: a zero is no value, and the line is interrupted.
	gaps bool
}

// draw makes a chart of the series.
func draw(id, title, about string, x, y scale, format func(float64) string, all ...series) chart {
	c := chart{ID: id, Title: title, About: about, XCaption: x.caption, YCaption: y.caption, Plot: plotHeight, Empty: true}
	for _, t := range x.ticks {
		c.XTicks = append(c.XTicks, tick{across(x, t.value), t.label})
	}
	for _, t := range y.ticks {
		c.YTicks = append(c.YTicks, tick{up(y, t.value), t.label})
	}
	for i, s := range all {
		c.Lines = append(c.Lines, s.draw(i+1, x, y, len(all) == 1))
		c.Empty = c.Empty && largest(s.ys) == 0
	}
	c.Says = title + ", " + about + ": " + say(format, all)
	c.Spots = spots(x, y, format, all)
	return c
}

func across(x scale, v float64) float64 { return marginLeft + x.at(v)*plotWidth }
func up(y scale, v float64) float64     { return plotBottom - y.at(v)*plotHeight }

// say tells the range of each series.
func say(format func(float64) string, all []series) string {
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

// draw makes the line, as a path, filled if it is the only one.
func (s *series) draw(number int, x, y scale, alone bool) line {
	var path strings.Builder
	pen := "M"
	for i := range s.xs {
		if s.gaps && s.ys[i] == 0 {
			pen = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%.1f,%.1f", pen, across(x, s.xs[i]), up(y, s.ys[i]))
		if pen == "M" && s.gaps {
			path.WriteString("l0,0") // a value between two gaps shows as a dot
		}
		pen = "L"
	}
	l := line{Name: s.name, Number: number, Points: path.String()}
	if n := len(s.xs); alone && !s.gaps && n > 0 {
		l.Area = fmt.Sprintf("%sL%.1f,%.1fL%.1f,%.1fZ", l.Points,
			across(x, s.xs[n-1]), plotBottom, across(x, s.xs[0]), plotBottom)
	}
	return l
}

// spots makes a column around each point of the first series, which all share
// their places.
func spots(x, y scale, format func(float64) string, all []series) (columns []spot) {
	if len(all) == 0 {
		return nil
	}
	xs := all[0].xs
	for i := range xs {
		left, right := across(x, xs[i]), across(x, xs[i])
		if i > 0 {
			left = (left + across(x, xs[i-1])) / 2
		}
		if i+1 < len(xs) {
			right = (right + across(x, xs[i+1])) / 2
		}
		var values []string
		for _, s := range all {
			if i < len(s.ys) && !(s.gaps && s.ys[i] == 0) {
				values = append(values, s.name+" "+format(s.ys[i]))
			}
		}
		columns = append(columns, spot{
			X: left, Width: max(1, right-left), Middle: across(x, xs[i]), Y: up(y, all[0].ys[i]), Text: strings.Join(values, ", "),
		})
	}
	return columns
}
