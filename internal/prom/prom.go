// Package prom has what the collectors for Prometheus of this module have in common: how they make
// metrics, bounds and labels.
package prom

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Counters makes counters with those labels.
func Counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Histograms makes histograms with those bounds and labels.
func Histograms(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, labels)
}

// Ascending returns the bounds and more of them as a histogram needs them: in order, each once.
func Ascending(bounds []float64, more ...float64) []float64 {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(bounds, more))))
}

// Label returns a text as a label, which must be UTF-8.
func Label(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
