/* Draws the curves of a report with dygraphs, from the numbers in the page. */
(function () {
	'use strict';
	// dygraphs' own legend writes markup; values are read out by this program instead.
	Dygraph.PLUGINS = Dygraph.PLUGINS.filter(function (plugin) {
		return plugin !== Dygraph.Plugins.Legend;
	});
	var data = JSON.parse(document.getElementById('data').textContent);
	var prefersDark = window.matchMedia('(prefers-color-scheme: dark)');
	var graphs = [];

	function color(name) {
		return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
	}

	// Rows of all lines, null where a line has no point: one for each place that placeOf() names, or more
	// if a line has several points there.
	function rowsBy(lines, placeOf, xOf) {
		var places = new Map();
		lines.forEach(function (line, at) {
			var before = null, next = 0;
			line.points.forEach(function (point) {
				var place = placeOf(point[0]), rows = places.get(place);
				if (!rows) {
					places.set(place, rows = []);
				}
				next = place === before ? next + 1 : 0;
				before = place;
				if (next === rows.length) {
					rows.push(new Array(lines.length + 1).fill(null));
				}
				rows[next][at + 1] = point[1];
			});
		});
		var order = Array.from(places.keys()).sort(function (a, b) { return a - b; });
		return order.map(function (place) {
			var rows = places.get(place);
			rows.forEach(function (row, at) { row[0] = xOf(place, at, rows.length); });
			return rows;
		}).flat();
	}

	// dygraphs draws each line over the rows of all. Where those are many, points of one pixel share rows: every
	// value stays, and its x is right to a thousandth of the whole.
	function rowsOf(lines) {
		var exact = rowsBy(lines, function (x) { return x; }, function (x) { return x; });
		if (lines.length < 2 || exact.length * lines.length < 40000) {
			return exact;
		}
		var least = exact[0][0], width = (exact[exact.length - 1][0] - least) / 1000;
		return rowsBy(lines, function (x) { return Math.floor((x - least) / width); }, function (place, at, count) {
			var x = least + (place + at / count) * width;
			return width > 8 ? Math.floor(x) : x;
		});
	}

	// A row of no numbers, at which every line ends, before the first row at each of these places.
	function withGaps(rows, gaps) {
		return (gaps || []).reduce(function (all, x) {
			var at = all.findIndex(function (row) { return row[0] >= x; });
			if (at > 0) {
				var gap = new Array(all[0].length).fill(NaN);
				gap[0] = (all[at - 1][0] + all[at][0]) / 2;
				all.splice(at, 0, gap);
			}
			return all;
		}, rows);
	}

	function short(value) {
		return value === null || value === undefined ? '' : String(Number(value.toPrecision(6)));
	}

	// Bands of steps that were made again, and a line where an attempt began.
	function underlay(chart) {
		return function (context, area, graph) {
			context.save();
			context.fillStyle = color('band');
			(chart.bands || []).forEach(function (band) {
				var from = graph.toDomXCoord(band.from), to = graph.toDomXCoord(band.to);
				context.fillRect(from, area.y, Math.max(to - from, 2), area.h);
			});
			context.strokeStyle = context.fillStyle = color('soft');
			context.setLineDash([3, 3]);
			context.font = '11px sans-serif';
			(chart.marks || []).forEach(function (mark, at) {
				var x = Math.round(graph.toDomXCoord(mark.x)) + 0.5;
				if (x < area.x || x > area.x + area.w) {
					return;
				}
				context.beginPath();
				context.moveTo(x, area.y);
				context.lineTo(x, area.y + area.h);
				context.stroke();
				if (at < 8 && x + 60 < area.x + area.w) {
					context.fillText(mark.words, x + 3, area.y + 11 + (at % 3) * 12);
				}
			});
			context.restore();
		};
	}

	function read(figure, chart, row, rows) {
		var words = [];
		chart.lines.forEach(function (line, at) {
			if (rows[row] && rows[row][at + 1] !== null && !isNaN(rows[row][at + 1])) {
				words.push(line.name + ': ' + short(rows[row][at + 1]));
			}
		});
		figure.querySelector('.read').textContent =
			rows[row] ? chart.x + ' ' + short(rows[row][0]) + '; ' + words.join(', ') : '';
	}

	function options(chart) {
		var series = {};
		chart.lines.forEach(function (line) {
			series[line.name] = {
				color: color('c' + line.color % 8),
				strokePattern: line.dashed ? [4, 3] : null,
				strokeWidth: line.dashed ? 1 : 1.5
			};
		});
		return {
			series: series,
			axisLineColor: color('soft'),
			gridLineColor: color('line'),
			underlayCallback: underlay(chart)
		};
	}

	// Arrow keys read the points; plus, minus and 0 zoom.
	function keys(graph, figure, chart, rows) {
		var at = -1;
		return function (event) {
			var moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -50, PageDown: 50, Home: -rows.length, End: rows.length };
			var range = graph.xAxisRange(), middle = at < 0 ? (range[0] + range[1]) / 2 : rows[at][0];
			if (event.altKey || event.ctrlKey || event.metaKey) {
				return;
			}
			if (event.key in moves) {
				at = Math.min(Math.max(at + moves[event.key], 0), rows.length - 1);
				graph.setSelection(at);
				read(figure, chart, at, rows);
			} else if (event.key === '+' || event.key === '-') {
				var half = (range[1] - range[0]) / 2 * (event.key === '+' ? 0.5 : 2);
				graph.updateOptions({ dateWindow: [middle - half, middle + half] });
			} else if (event.key === '0') {
				graph.resetZoom();
			} else {
				return;
			}
			event.preventDefault();
		};
	}

	function draw(chart, number) {
		var figure = document.getElementById('chart-' + number), place = figure.querySelector('.chart');
		var rows = withGaps(rowsOf(chart.lines), chart.gaps);
		figure.classList.add('drawn');
		var settings = options(chart);
		settings.labels = [chart.x].concat(chart.lines.map(function (line) { return line.name; }));
		settings.connectSeparatedPoints = !chart.bars;
		settings.stepPlot = Boolean(chart.bars);
		settings.fillGraph = settings.stepPlot && chart.lines.length < 4;
		settings.includeZero = Boolean(chart.bars);
		settings.drawPoints = chart.lines.every(function (line) { return line.points.length < 40; }) && !chart.bars;
		settings.pointSize = 2;
		settings.axes = {
			x: { axisLabelFormatter: short, valueFormatter: short, axisLabelWidth: 70 },
			y: { axisLabelFormatter: short, valueFormatter: short, axisLabelWidth: 64 }
		};
		settings.animatedZooms = false;
		settings.highlightCircleSize = 4;
		settings.highlightCallback = function (event, x, points, row) { read(figure, chart, row, rows); };
		settings.unhighlightCallback = function () { read(figure, chart, -1, rows); };
		var graph = new Dygraph(place, rows, settings);
		graphs.push({ graph: graph, chart: chart });
		place.addEventListener('keydown', keys(graph, figure, chart, rows));
		figure.querySelector('.all').addEventListener('click', function () { graph.resetZoom(); });
		var log = figure.querySelector('.log');
		log.hidden = Boolean(chart.bars);
		log.addEventListener('click', function () {
			var on = log.getAttribute('aria-pressed') !== 'true';
			log.setAttribute('aria-pressed', String(on));
			graph.updateOptions({ logscale: on });
		});
	}

	// On paper all colours are those of the light scheme.
	function recolor(paper) {
		document.documentElement.classList.toggle('paper', paper);
		graphs.forEach(function (one) { one.graph.updateOptions(options(one.chart)); });
	}

	// A link leads to what it names, folded or not.
	function unfold() {
		var section = location.hash ? document.getElementById(location.hash.slice(1)) : null;
		var folded = section && section.querySelector(':scope > details');
		if (folded) {
			folded.open = true;
		}
	}

	(data.charts || []).forEach(draw);
	window.addEventListener('hashchange', unfold);
	unfold();
	prefersDark.addEventListener('change', function () { recolor(false); });
	window.addEventListener('beforeprint', function () { recolor(true); });
	window.addEventListener('afterprint', function () { recolor(false); });
	if (data.renewed) {
		var renew = document.getElementById('renew');
		renew.closest('p').style.display = 'block';
		setInterval(function () {
			if (renew.checked) {
				location.reload();
			}
		}, 10000);
	}
	document.documentElement.dataset.charts = String(graphs.length);
}());
