package io.brisk.lettuce.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Prints JMH results as one Markdown table: {@code Table RESULT.json...}. A file's name consists of server, round trip,
 * threads and round, as in {@code run.sh}: {@code brisk-12ms-200t-1.json}. If there are several rounds, the median is
 * printed.
 */
public final class Table {

    private static final Pattern NAME = Pattern.compile("(\\w+)-([\\d.]+)ms-(\\d+)t-(\\d+)\\.json");

    private static final Pattern BENCHMARK = Pattern.compile("\"benchmark\" : \"[\\w.]+\\.(\\w+)\"");

    private static final Pattern MODE = Pattern.compile("\"mode\" : \"([a-z0-9-]+)\"");

    private static final Pattern SCORE = Pattern.compile("\"score\" : ([-\\d.E+]+)");

    private Table() {
    }

    public static void main(String[] arguments) throws IOException {
        Set<String> columns = new LinkedHashSet<>();
        Map<String, Map<String, List<Double>>> rows = new LinkedHashMap<>();
        for (String argument : arguments) {
            Path file = Path.of(argument);
            Matcher name = NAME.matcher(file.getFileName().toString());
            if (!name.matches()) {
                throw new IOException(file + " is not named like brisk-12ms-200t-1.json");
            }
            String where = name.group(1) + " " + name.group(2) + " ms " + name.group(3) + " threads";
            read(Files.readString(file), where, columns, rows);
        }
        print(columns, rows);
    }

    /** JMH writes one object per result: {@code params} has the mode, {@code primaryMetric} the score. */
    private static void read(String json, String where, Set<String> columns, Map<String, Map<String, List<Double>>> rows)
            throws IOException {
        String[] results = json.split("\"jmhVersion\"");
        for (int i = 1; i < results.length; i++) {
            int params = results[i].indexOf("\"params\"");
            int metric = results[i].indexOf("\"primaryMetric\"");
            if (params < 0 || metric < 0) {
                throw new IOException("A result in " + where + " lacks params or primaryMetric");
            }
            String column = first(BENCHMARK, results[i]) + " " + where;
            String mode = first(MODE, results[i].substring(params));
            columns.add(column);
            rows.computeIfAbsent(mode, m -> new LinkedHashMap<>()).computeIfAbsent(column, c -> new ArrayList<>())
                    .add(Double.valueOf(first(SCORE, results[i].substring(metric))));
        }
    }

    private static String first(Pattern pattern, String text) throws IOException {
        Matcher matcher = pattern.matcher(text);
        if (!matcher.find()) {
            throw new IOException("No " + pattern + " in a result");
        }
        return matcher.group(1);
    }

    private static void print(Set<String> columns, Map<String, Map<String, List<Double>>> rows) {
        StringBuilder out = new StringBuilder("| commands per second | ").append(String.join(" | ", columns)).append(" |\n|---|");
        out.append("---:|".repeat(columns.size())).append('\n');
        rows.forEach((mode, cells) -> {
            out.append("| ").append(mode);
            for (String column : columns) {
                List<Double> scores = cells.get(column);
                out.append(" | ").append(scores == null ? "" : String.format(Locale.ROOT, "%,.0f", median(scores)));
            }
            out.append(" |\n");
        });
        System.out.print(out);
    }

    private static double median(List<Double> scores) {
        List<Double> sorted = scores.stream().sorted().toList();
        int middle = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted.get(middle) : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
    }
}
