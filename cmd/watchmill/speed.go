package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// speed is a factor of real time; zero is as fast as possible.
type speed float64

// UnmarshalText reads "max", or a factor such as "1000x" or "0.5".
func (s *speed) UnmarshalText(text []byte) error {
	if string(text) == "max" {
		*s = 0
		return nil
	}
	factor, err := strconv.ParseFloat(strings.TrimSuffix(string(text), "x"), 64)
	if err != nil || !(factor > 0) || math.IsInf(factor, 1) {
		return fmt.Errorf("%q is no speed: give a factor above 0, such as 1000x, or max", text)
	}
	*s = speed(factor)
	return nil
}
