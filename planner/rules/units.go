package rules

// unitOf returns the canonical name of a unit of measurement, "" if the word is none.
func unitOf(word string) string { return units[word] }

var units = table(`
second: s, sec, secs, second, seconds
millisecond: ms, millisecond, milliseconds
minute: min, mins, minute, minutes
hour: h, hr, hrs, hour, hours, hourly
day: d, day, days, daily
week: week, weeks, wk
month: month, months
year: year, years, yr, yrs
decade: decade, decades
meter: meter, meters, metre, metres
centimeter: cm, centimeter, centimeters, centimetres
millimeter: mm, millimeter, millimeters
kilometer: km, kms, kilometer, kilometers, kilometre, kilometres
mile: mile, miles, mi
foot: ft, foot, feet
inch: inch, inches
yard: yd, yard, yards
gram: g, gram, grams
kilogram: kg, kgs, kilo, kilogram, kilograms, kilos
milligram: mg, milligram, milligrams
pound: lb, lbs
ounce: oz, ounce, ounces
ton: ton, tons, tonne, tonnes
liter: l, liter, liters, litre, litres
milliliter: ml, milliliter, milliliters
gallon: gallon, gallons
celsius: c, °c, celsius
fahrenheit: f, °f, fahrenheit
kelvin: k, kelvin
degree: °, degree, degrees
hertz: hz, hertz
kilohertz: khz
megahertz: mhz
volt: v, volt, volts
ampere: amp, amps, ampere, amperes
ohm: ohm, ohms
watt: w, watt, watts
kilowatt: kw, kilowatts
joule: j, joule, joules
newton: n, newton, newtons
pascal: pa, pascal, pascals
kilopascal: kpa
atmosphere: atm, atmosphere, atmospheres
mole: mol, mole, moles
calorie: calorie, calories, kcal
byte: byte, bytes
kilobyte: kb
megabyte: mb
gigabyte: gb
terabyte: tb
speed: km/h, kmh, kph, mph, m/s, m/sec, ft/s
acceleration: m/s^2, m/s²
density: kg/m^3, kg/m³, g/cm^3
area: m^2, m², sqft, km^2, cm^2
volume: m^3, m³, cm^3
`)

// scales maps pairs of units to the factor between them, for parameters that name their own unit.
var scales = map[string]float64{
	"second": 1, "millisecond": 0.001, "minute": 60, "hour": 3600, "day": 86400, "week": 604800,
}

// lengths in metres, masses in grams.
var lengths = map[string]float64{
	"meter": 1, "centimeter": 0.01, "millimeter": 0.001, "kilometer": 1000, "mile": 1609.344, "foot": 0.3048, "inch": 0.0254, "yard": 0.9144,
}

var masses = map[string]float64{"gram": 1, "kilogram": 1000, "milligram": 0.001, "ton": 1e6}

var months = map[string]float64{"month": 1, "year": 12, "decade": 120}

// convert returns v expressed in another unit of the same quantity.
func convert(v float64, from, to string) (float64, bool) {
	for _, dimension := range []map[string]float64{scales, lengths, masses, months} {
		a, b := dimension[from], dimension[to]
		if a > 0 && b > 0 {
			return roundTo(v*a/b, 9), true
		}
	}
	return v, false
}
